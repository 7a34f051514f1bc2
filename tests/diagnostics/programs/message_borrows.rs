use beehive::prelude::*;

#[derive(Message)]
struct Sold {
    item: &'static str, // a mistake
    amount: u64,
}

#[derive(App)]
struct Shop {
    stock: Dict<String, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        self.stock.remove(msg.item);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
