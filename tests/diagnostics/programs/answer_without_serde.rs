use beehive::prelude::*;

struct Stock {
    left: u64,
}

#[derive(Message)]
#[message(reply = Stock)] // a mistake
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<Stock> {
        Some(Stock { left: *self.stock.get(&msg.0)? })
    }
}
async fn ask(hive: &Hive) -> u64 {
    hive.request(Look(1)).await.unwrap().left
}
fn main() {
    let _ = Hive::builder().app::<Shop>();
}
