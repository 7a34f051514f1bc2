use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Sum;

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sum(&mut self, _: &Sum) -> u64 {
        let mut sum = 0;
        for (_, amount) in self.stock.iter() { // a mistake
            sum += *amount;
        }
        sum
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
