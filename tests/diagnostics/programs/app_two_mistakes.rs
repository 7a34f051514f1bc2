use beehive::prelude::*;

#[derive(Message)]
struct Sold(u64);

#[derive(App)]
#[app(cells = 0)] // a mistake
struct Shop {
    #[volatile]
    settings: Config<u64>, // a mistake
    #[rows(max = 10)] // a mistake
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        self.stock.remove(&msg.0);
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
