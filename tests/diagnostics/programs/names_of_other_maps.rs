// What the caller does with the result causes no further errors.
use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Sold(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
    shelves: Table<u64, u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) -> u64 {
        if !self.stock.contains_key(&msg.0) { // a mistake
            self.stock.insert(msg.0, 1); // a mistake
        }
        self.shelves.insert((msg.0, 1), 2); // a mistake
        if let Some(items) = self.shelves.get_mut(&msg.0) { // a mistake
            items.push(msg.0);
        }
        *self.shelves.entry(msg.0).or_insert(0) += 1; // a mistake
        self.shelves.get(&msg.0).and_then(|items| items.get(1)).copied().unwrap_or(0) + 1 // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
