use beehive::prelude::*;

struct ItemId(u64);

#[derive(Message)]
#[message(reply = u64)]
struct Sold(u64, u64);

#[derive(App)]
struct Shop {
    stock: Dict<ItemId, u64>, // a mistake
    seen: Dict<ItemId, u32>,
}

#[handlers]
impl Shop {
    #[rcv(joins)]
    fn sold(&mut self, msg: &Sold) -> u64 {
        if let Some(seen) = self.seen.get_mut(&ItemId(msg.0)) {
            *seen += 1;
        }
        self.seen.remove(&ItemId(msg.1));
        let count = self.stock.entry(ItemId(msg.0)).or_default();
        *count -= msg.1;
        *count
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
