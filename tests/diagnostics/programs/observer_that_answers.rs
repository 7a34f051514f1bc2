use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Buy(u64);

type Result = std::result::Result<u64, beehive::Error>;

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv(observes)]
    fn buy(&mut self, Buy(item): &Buy) -> Result { // a mistake
        Ok(self.stock.remove(item).unwrap_or(0))
    }
}
