use beehive::prelude::*;

type Done = Result<()>;
type Nothing = ();

#[derive(Message)]
struct Sold(u64);

#[derive(Message)]
struct Bought(u64);

#[derive(App)]
struct Stock {
    items: Dict<u64, u64>,
}

#[handlers]
impl Stock {
    #[rcv]
    fn sold(&mut self, msg: &Sold) -> Done { // a mistake
        let items = self.items.entry(msg.0).or_default();
        *items = items.checked_sub(1).ok_or("none left")?;
        Ok(())
    }

    #[rcv]
    fn bought(&mut self, msg: &Bought) -> Nothing { // a mistake
        *self.items.entry(msg.0).or_default() += 1;
    }
}

fn main() {
    let _ = Hive::builder().app::<Stock>();
}
