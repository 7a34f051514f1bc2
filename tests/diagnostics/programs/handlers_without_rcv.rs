use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Dict<String, u64>,
}

#[handlers]
impl Shop { // a mistake
    fn look(&mut self, msg: &Look) -> u64 {
        1
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
