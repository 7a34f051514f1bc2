use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64, error = &'static str)] // a mistake
struct Buy(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn buy(&mut self, Buy(item): &Buy) -> Result<u64, &'static str> {
        self.stock.remove(item).ok_or("sold out")
    }
}

async fn ask(hive: &Hive) -> bool {
    hive.request(Buy(1)).await.is_ok()
}
fn main() {
    let _ = Hive::builder().app::<Shop>();
}
