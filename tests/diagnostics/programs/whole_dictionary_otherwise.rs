use beehive::prelude::*;

#[derive(Message)]
struct Clear;

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
    shelves: Table<u64, u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn clear(&mut self, _: &Clear) {
        let highest = self.stock.values().copied().max(); // a mistake
        if self.stock.len() > 10 || highest > Some(7) { // a mistake
            self.stock.retain(|_, amount| *amount > 0); // a mistake
        }
        for (shelf, item, amount) in self.shelves.iter() { // a mistake
            let _ = shelf + item + amount;
        }
        for shelf in self.shelves.keys() { // a mistake
            let _ = shelf + 1;
        }
        let names: Vec<u64> = self.shelves.into_iter().map(|(shelf, ..)| *shelf).collect(); // a mistake
        if names.is_empty() || self.shelves.is_empty() { // a mistake
            self.shelves.clear(); // a mistake
        }
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
