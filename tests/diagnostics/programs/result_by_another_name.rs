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
struct Return(u64);

type Result = std::result::Result<u64, No>;

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn buy(&mut self, Buy(item): &Buy) -> Result { // a mistake
        self.stock.remove(item).ok_or(No::SoldOut)
    }
}

mod returns {
    use super::*;

    type Result = std::result::Result<(), No>;

    #[derive(App)]
    struct Returns {
        stock: Dict<u64, u64>,
    }

    #[handlers]
    impl Returns {
        #[rcv]
        fn take_back(&mut self, Return(item): &Return) -> Result {
            *self.stock.entry(*item).or_default() += 1;
            Ok(())
        }
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
