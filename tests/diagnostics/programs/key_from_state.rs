use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Move(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
    shelves: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn shift(&mut self, msg: &Move) -> Option<u64> {
        let shelf = *self.stock.get(&msg.0)?;
        self.shelves.put(shelf, msg.0) // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
    let _ = <Shop as beehive::Handles<Move>>::HANDLER;
}
