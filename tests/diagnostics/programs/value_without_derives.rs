use beehive::prelude::*;

#[derive(Default)]
struct Item {
    left: u64,
}

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, Item>, // a mistake
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<u64> {
        let item = self.stock.get_mut(&msg.0)?;
        item.left += 1;
        if self.stock.contains(&msg.0) {
            self.stock.update(msg.0, |item| item.left -= 1);
        }
        self.stock.get(&msg.0).map(|item| item.left)
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
