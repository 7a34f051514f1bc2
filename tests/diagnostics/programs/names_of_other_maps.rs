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
        if !self.stock.contains_key(&msg.0) { // a mistake
            self.stock.insert(msg.0, 1); // a mistake
        }
        self.shelves.insert((msg.0, 1), 2); // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
