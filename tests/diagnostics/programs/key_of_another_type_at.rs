use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Table<String, u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<u64> {
        self.stock.at(msg.0).get(&1).copied() // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
