use beehive::prelude::*;

#[derive(Message)]
struct Sold(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
    shelves: Table<u64, u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        self.stock.put(&msg.0, 4); // a mistake
        *self.stock.entry(&msg.0).or_default() += 1; // a mistake
        self.shelves.at(&msg.0).insert(1, 2); // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
