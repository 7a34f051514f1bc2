use beehive::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum No {
    SoldOut,
}

#[derive(Message)]
#[message(reply = u64, error = "No")] // a mistake
struct Buy(u64);

#[derive(Message)]
#[message(reply = Result<u64, No>, commits_errors = true)] // a mistake
struct TryToBuy(u64);

#[derive(Message)]
#[message(reply)] // a mistake
struct Restock(u64);

#[derive(Message)]
#[message(reply = u64, reply = u64)] // a mistake
struct Count(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn buy(&mut self, Buy(item): &Buy) -> Result<u64, No> {
        self.stock.remove(item).ok_or(No::SoldOut)
    }
    #[rcv]
    fn try_to_buy(&mut self, TryToBuy(item): &TryToBuy) -> Result<u64, No> {
        self.stock.remove(item).ok_or(No::SoldOut)
    }
    #[rcv]
    fn restock(&mut self, Restock(item): &Restock) {
        self.stock.put(*item, 1);
    }
    #[rcv]
    fn count(&mut self, Count(item): &Count) -> u64 {
        self.stock.get(item).copied().unwrap_or_default()
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
