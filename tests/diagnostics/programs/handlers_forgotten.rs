use beehive::prelude::*;

#[derive(Message)]
struct Sold(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        self.stock.remove(&msg.0);
    }

    #[every("10s")]
    fn clear(&mut self) {
        self.stock.remove(&1);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>(); // a mistake
}
