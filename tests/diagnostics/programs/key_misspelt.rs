use beehive::prelude::*;

#[derive(Message)]
struct Sold { item: u64 }

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        let item = msg.item;
        *self.stock.entry(itm).or_default() += 1; // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
