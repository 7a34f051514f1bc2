use beehive::prelude::*;

#[derive(Message)]

struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Dict<String, u64>,
}

#[handlers]
impl Shop {
    #[rcv(each = stock)]
    fn look(&mut self, key: &u64, _: &Look) {
        self.stock.remove(key); // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
