use beehive::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum No {
    SoldOut,
}

type Bought = Result<u64, No>;

#[derive(Message)]
#[message(reply = u64, error = Bought)] // a mistake
struct Buy(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn buy(&mut self, Buy(item): &Buy) -> Result<u64, Bought> {
        self.stock.remove(item).ok_or(Err(No::SoldOut))
    }
}
