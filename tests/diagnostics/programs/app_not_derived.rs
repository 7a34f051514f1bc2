use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

struct Shop { // a mistake
    stock: Dict<u64, u64>,
    seen: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<u64> {
        self.seen.put(msg.0, 1);
        self.stock.get(&msg.0).copied()
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
