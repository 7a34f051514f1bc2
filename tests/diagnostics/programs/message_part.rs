use beehive::prelude::*;

struct Item {
    name: String,
}

#[derive(Message)]
struct Sold {
    items: Vec<Item>, // a mistake
    returned: Vec<Item>,
    count: u64,
}

#[derive(App)]
struct Shop {
    stock: Dict<String, u64>,
}

#[handlers]
impl Shop {
    #[rcv(joins)]
    fn sold(&mut self, msg: &Sold) {
        for item in &msg.items {
            self.stock.remove(&item.name);
        }
    }
}

async fn sell(hive: &Hive) {
    hive.emit(Sold { items: vec![Item { name: "bread".into() }], returned: vec![], count: 1 });
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
