use beehive::prelude::*;
use std::collections::HashMap;

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
    cache: HashMap<u64, u64>, // a mistake
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<u64> {
        let known = self.cache.get(&msg.0).copied();
        let found = known.or(self.stock.get(&msg.0).copied())?;
        self.cache.insert(msg.0, found);
        Some(found)
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
    println!("{}", Shop::map_report());
}
