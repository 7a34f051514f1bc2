use beehive::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum No {
    SoldOut,
}

#[derive(Message)]
#[message(reply = Result<u64, No>)] // a mistake
struct Buy(u64);

/// An alias hides nothing.
type Bought = std::result::Result<u64, String>;
#[derive(Message)]
#[message(reply = Bought)] // a mistake
struct BuyAll;

#[derive(Message)]
#[message(reply = Option<Result<u64, No>>)] // a mistake
struct BuyIfOpen;

#[derive(Message)]
#[message(reply = Result<u64, No>, commits_errors)]
struct TryToBuy(u64);

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
    #[rcv(stateless)]
    fn buy_all(&mut self, _: &BuyAll) -> Bought {
        Err("sold out".into())
    }
    #[rcv]
    fn try_to_buy(&mut self, TryToBuy(item): &TryToBuy) -> Result<u64, No> {
        self.stock.remove(item).ok_or(No::SoldOut)
    }
}

async fn ask(hive: &Hive) -> Result<u64, No> {
    hive.request(TryToBuy(1)).await.unwrap()
}
fn main() {
    let _ = Hive::builder().app::<Shop>();
}
