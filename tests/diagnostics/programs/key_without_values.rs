use beehive::prelude::*;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum ItemId {} // a mistake

#[derive(Message)]
struct Sold(u64);

#[derive(App)]
struct Shop {
    stock: Dict<ItemId, u64>,
    sold: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        self.sold.remove(&msg.0);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
