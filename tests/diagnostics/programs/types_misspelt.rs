use beehive::prelude::*;

#[derive(Message)]
#[message(reply = Left)] // a mistake
struct Look(Number); // a mistake

#[derive(Message)]
struct Sold {
    items: Vec<Product>, // a mistake
}

#[derive(App)]
struct Shop {
    stock: Dict<ItemNumber, u64>, // a mistake
    names: Dict<u64, Name>, // a mistake
    shelves: Table<u64, Row, u64>, // a mistake
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Rest { // a mistake
        let rest = self.stock.get(&msg.0);
        rest
    }

    #[rcv(each = stock)]
    fn clear(&mut self, key: &Place, msg: &Sold) { // a mistake
        self.stock.remove(key);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
