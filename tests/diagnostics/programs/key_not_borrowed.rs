use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<u64> {
        self.stock.get(msg.0).copied() // a mistake
    }
}
fn main() {
    let _ = Hive::builder().app::<Shop>();
}
