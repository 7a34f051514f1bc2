use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Dict<String, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> u64 {
        let mut sum = 0;
        for (_, amount) in &self.stock { // a mistake
            sum += amount;
        }
        sum
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
