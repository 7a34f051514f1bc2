use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Look {
    item: u64,
}

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
    shelves: Table<u64, u64, u64>,
    limits: Config<Vec<u64>>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> u64 {
        self.stock[&msg.item] += 1; // a mistake
        self.shelves[msg.item] + self.limits[0] // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
