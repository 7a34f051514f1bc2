use beehive::prelude::*;

#[derive(Message)]
struct Sold(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sould) { // a mistake
        self.stock.remove(&msg.0);
    }
}
fn main() {
    let _ = Hive::builder().app::<Shop>();
}
