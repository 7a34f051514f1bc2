use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Dict<String, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<u64> {
        self.stock.put(msg.0, 5) // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
