use beehive::prelude::*;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
struct Row(u64);

#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);

#[derive(App)]
struct Shop {
    stock: Table<u64, Row, u64>, // a mistake
}

#[handlers]
impl Shop {
    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<u64> {
        let rows = self.stock.at(msg.0);
        rows.retain(|_, amount| *amount > 0);
        rows.insert(Row(1), 1)
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
