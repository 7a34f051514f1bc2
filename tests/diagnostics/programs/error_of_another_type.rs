use beehive::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum No {
    SoldOut,
}

#[derive(Message)]
#[message(reply = u64, error = No)]
struct Buy(u64);

#[derive(Message)]
#[message(error = No)]
struct Order(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn buy(&mut self, Buy(item): &Buy) -> Result<u64, String> { // a mistake
        self.stock.remove(item).ok_or("sold out".into())
    }
    #[rcv]
    fn order(&mut self, Order(item): &Order) -> Result<()> { // a mistake
        self.stock.remove(item).map(drop).ok_or("sold out".into())
    }
}

fn main() {
    let _ = (Hive::builder().app::<Shop>(), No::SoldOut);
}
