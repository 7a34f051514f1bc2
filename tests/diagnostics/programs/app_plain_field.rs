use beehive::prelude::*;

#[derive(Message)]
struct Sold(u64);

#[derive(App)]
struct Shop {
    total: u64, // a mistake
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        self.total += 1;
        self.stock.remove(&msg.0);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
