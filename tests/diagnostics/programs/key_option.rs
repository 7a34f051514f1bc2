use beehive::prelude::*;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
#[key(short)] // a mistake
struct ItemId(u64);

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
