use beehive::prelude::*;

#[derive(Key, PartialEq, Eq, PartialOrd, Ord)]
struct ItemId(u64); // a mistake

#[derive(Message)]
struct Sold(ItemId);

#[derive(Message)]
struct Count;

#[derive(App)]
struct Shop {
    stock: Dict<ItemId, u64>,
    sold: Dict<ItemId, u64>,
    shelves: Table<ItemId, u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv(joins)]
    fn sold(&mut self, msg: &Sold) {
        *self.stock.entry(ItemId(msg.0.0)).or_default() += 1;
        self.sold.remove(&msg.0);
        self.shelves.at(ItemId(msg.0.0)).insert(1, 2);
    }
    #[rcv(each = stock)]
    fn count(&mut self, key: &ItemId, _: &Count) {
        self.stock.remove(key);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
