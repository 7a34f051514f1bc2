use beehive::prelude::*;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Brand(u64);

#[derive(Key, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ItemId {
    Own(u64),
    Other { brand: Brand, number: u64 }, // a mistake
}

#[derive(Message)]
struct Sold(ItemId);

#[derive(App)]
struct Shop {
    stock: Dict<ItemId, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        self.stock.remove(&msg.0);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
