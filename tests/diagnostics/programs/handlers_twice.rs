use beehive::prelude::*;

#[derive(Message)]
struct Sold(u64);

#[derive(Message)]
struct Bought(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        self.stock.remove(&msg.0);
    }
}

#[handlers] // a mistake
impl Shop {
    #[rcv]
    fn bought(&mut self, msg: &Bought) {
        self.stock.put(msg.0, 1);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
