use beehive::prelude::*;

enum No {
    SoldOut,
}

#[derive(Message)]
#[message(reply = u64, error = No)] // a mistake
struct Buy(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn buy(&mut self, Buy(item): &Buy) -> Result<u64, No> {
        self.stock.remove(item).ok_or(No::SoldOut)
    }
}

async fn ask(hive: &Hive) -> bool {
    hive.request(Buy(1)).await.is_ok()
}
fn main() {
    let _ = Hive::builder().app::<Shop>();
}
