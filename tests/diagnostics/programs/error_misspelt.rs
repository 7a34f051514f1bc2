use beehive::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum Refused {
    SoldOut,
}

#[derive(Message)]
#[message(reply = u64, error = Refusd)] // a mistake
struct Buy(u64);

#[derive(Message)]
#[message(reply = u64)]
struct Sell(u64);

#[derive(Message)]
#[message(error = Refusal)] // a mistake
struct Return(u64);

/// One error for each place where the name is written, and none from what is derived.
#[derive(Message)]
#[message(reply = u64, error = Absent)] // a mistake
struct Order(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn buy(&mut self, Buy(item): &Buy) -> Result<u64, Refused> {
        self.stock.remove(item).ok_or(Refused::SoldOut)
    }

    #[rcv]
    fn sell(&mut self, Sell(item): &Sell) -> Result<u64, Missing> { // a mistake
        Ok(self.stock.remove(item).unwrap_or_default())
    }

    #[rcv]
    fn take_back(&mut self, Return(item): &Return) -> Result<(), Refused> {
        *self.stock.entry(*item).or_default() += 1;
        Err(Refused::SoldOut)
    }

    #[rcv]
    fn order(&mut self, Order(item): &Order, ctx: &mut Ctx) -> Result<u64, Absent> { // a mistake
        ctx.emit(Sell(*item));
        Ok(self.stock.remove(item).unwrap_or_default())
    }
}

async fn ask(hive: &Hive) -> bool {
    match hive.request(Buy(1)).await {
        Err(beehive::RequestError::Handler(_)) => false,
        answer => answer.is_ok(),
    }
}
fn main() {
    let _ = Hive::builder().app::<Shop>();
}
