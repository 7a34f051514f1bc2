use beehive::prelude::*;

#[derive(Message, Clone)]
struct Sold {
    item: u64,
    amount: u64,
}

#[derive(App)]
struct Stock {
    items: Dict<u64, u64>,
    sold: Dict<u64, u64>,
}

macro_rules! show {
    ($value:expr) => {
        let value = $value;
        assert!(value < 1_000);
    };
}

macro_rules! next {
    ($msg:ident . $field:ident) => {
        let mut next = $msg.clone();
        next.$field += 1;
        let $msg = &next;
    };
}

#[handlers]
impl Stock {
    #[rcv(joins)]
    fn sold(&mut self, msg: &Sold) {
        show!(msg.item);
        self.items.put(msg.item, msg.amount);
        next!(msg.item); // a mistake
        self.sold.put(msg.item, msg.amount);
    }
}

fn main() {
    let _ = Hive::builder().app::<Stock>();
}
