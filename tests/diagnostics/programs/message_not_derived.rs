use beehive::prelude::*;

struct Sold(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) { // a mistake
        self.stock.remove(&msg.0);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
