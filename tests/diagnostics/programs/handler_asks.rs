use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Price {
    item: u64,
}

#[derive(Message)]
#[message(reply = u64)]
struct Order {
    item: u64,
}

#[derive(App)]
struct Shop {
    sold: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn order(&mut self, msg: &Order, ctx: &mut Ctx) -> Result<u64> {
        let price: u64 = ctx.request(Price { item: msg.item }); // a mistake
        let again = ctx.ask(Price { item: msg.item })?; // a mistake
        *self.sold.entry(msg.item).or_default() += price;
        Ok(price + again)
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
