use beehive::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum No {
    SoldOut,
}

#[derive(Message)]
#[message(reply = R)]
struct Ask<R>(u64, Option<R>);

type Bought = Result<u64, No>;

/// The reply depends on a parameter by way of an associated type.
trait Kind {
    type Bought;
}
impl Kind for u8 {
    type Bought = Option<Bought>;
}
#[derive(Message)]
#[message(reply = K::Bought)]
struct Buy<K: Kind<Bought: Send + Sync + Serialize + serde::de::DeserializeOwned + 'static>>(K);

#[derive(Serialize, Deserialize)]
struct ByHand;
impl Message for ByHand {
    type Reply = Bought;
    type Error = beehive::Error;
    const NAME: &'static str = "shop::ByHand";
}

#[derive(Message)]
#[message(reply = R, commits_errors)]
struct Try<R>(u64, Option<R>);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn ask(&mut self, msg: &Ask<Result<u64, No>>) -> Result<u64, No> { // a mistake
        self.stock.remove(&msg.0).ok_or(No::SoldOut)
    }
    #[rcv]
    fn ask_by_another_name(&mut self, msg: &Ask<Option<Bought>>) -> Option<Bought> { // a mistake
        self.stock.remove(&msg.0).map(Ok)
    }
    #[rcv(stateless)]
    fn buy(&mut self, _: &Buy<u8>) -> Option<Bought> { // a mistake
        Some(Err(No::SoldOut))
    }
    #[rcv(stateless)]
    fn by_hand(&mut self, _: &ByHand) -> Bought { // a mistake
        Err(No::SoldOut)
    }
    #[rcv]
    fn try_to_buy(&mut self, msg: &Try<Bought>) -> Bought {
        self.stock.remove(&msg.0).ok_or(No::SoldOut)
    }
    #[rcv]
    fn plain(&mut self, msg: &Ask<u64>) -> u64 {
        self.stock.remove(&msg.0).unwrap_or_default()
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
