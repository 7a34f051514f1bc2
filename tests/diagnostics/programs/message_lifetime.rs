use beehive::prelude::*;

#[derive(Message)]
struct Sold<'a> { // a mistake
    item: &'a str,
}

#[derive(App)]
struct Shop {
    stock: Dict<String, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold<'_>) {
        self.stock.remove(msg.item);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
