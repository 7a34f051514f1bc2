use beehive::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum No {
    SoldOut,
}

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[every("1s")]
    fn restock(&mut self) -> Result<(), No> { // a mistake
        Err(No::SoldOut)
    }

    #[every("1s", each = stock)]
    fn check(&mut self, item: &u64) -> Result<(), No> { // a mistake
        self.stock.remove(item).map(drop).ok_or(No::SoldOut)
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
