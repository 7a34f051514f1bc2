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
        let key = self.shelf(msg.item); // a mistake
        *self.stock.entry(key).or_default() += 1;
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
