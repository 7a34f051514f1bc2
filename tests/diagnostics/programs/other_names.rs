// Calls every method that dictionaries do not have but explain.
use beehive::prelude::*;

#[derive(Message)]
struct Sold {
    item: u64,
}

#[derive(App)]
struct Shop {
    dict: Dict<u64, u64>,
    table: Table<u64, u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, msg: &Sold) {
        let key = msg.item;
        let _ = self.dict.insert(key, 1); // a mistake
        let _ = self.dict.set(key, 1); // a mistake
        let _ = self.dict.contains_key(&key); // a mistake
        let _ = self.dict.get_or_insert_with(key, || 1); // a mistake
        let _ = self.dict.get_key_value(&key); // a mistake
        let _ = self.dict.remove_entry(&key); // a mistake
        let _ = self.dict.at(key); // a mistake
        let _ = self.table.get(&key); // a mistake
        let _ = self.table.get_mut(&key); // a mistake
        let _ = self.table.contains(&key); // a mistake
        let _ = self.table.contains_key(&key); // a mistake
        let _ = self.table.insert(key, 1); // a mistake
        let _ = self.table.put(key, 1); // a mistake
        let _ = self.table.set(key, 1); // a mistake
        let _ = self.table.remove(&key); // a mistake
        let _ = self.table.entry(key); // a mistake
        let _ = self.table.update(key, |value| *value += 1); // a mistake
        let _ = self.table.at(key).put(key, 1); // a mistake
        let _ = self.table.at(key).set(key, 1); // a mistake
        let _ = self.table.at(key).contains_key(&key); // a mistake
        let _ = self.table.at(key).update(key, |value| *value += 1); // a mistake
        let _ = self.table.at(key).first_key_value(); // a mistake
        let _ = self.table.at(key).last_key_value(); // a mistake
        let _ = self.table.at(key).iter_mut(); // a mistake
        let _ = self.table.at(key).values_mut(); // a mistake
        let _ = self.table.at(key).drain(); // a mistake
        let _ = self.table.at(key).extract_if(|_, _| true); // a mistake
        let _ = self.dict.whole().insert(key, 1); // a mistake
        let _ = self.dict.whole().contains(&key); // a mistake
        let _ = self.dict.whole().contains_key(&key); // a mistake
        let _ = self.dict.whole().get_mut(&key); // a mistake
        let _ = self.dict.whole().entry(key); // a mistake
        let _ = self.dict.whole().update(key, |value| *value += 1); // a mistake
        let _ = self.dict.whole().iter_mut(); // a mistake
        let _ = self.dict.whole().values_mut(); // a mistake
        let _ = self.dict.whole().clear(); // a mistake
        let _ = self.dict.whole().drain(); // a mistake
        let _ = self.dict.whole().range(0..key); // a mistake
        let _ = self.table.whole().get(&key); // a mistake
        let _ = self.table.whole().get_mut(&key); // a mistake
        let _ = self.table.whole().contains(&key); // a mistake
        let _ = self.table.whole().contains_key(&key); // a mistake
        let _ = self.table.whole().insert(key, 1); // a mistake
        let _ = self.table.whole().put(key, 1); // a mistake
        let _ = self.table.whole().remove(&key); // a mistake
        let _ = self.table.whole().entry(key); // a mistake
        let _ = self.table.whole().values(); // a mistake
        let _ = self.table.whole().len(); // a mistake
        let _ = self.table.whole().is_empty(); // a mistake
        let _ = self.table.whole().retain(|_, _, _| true); // a mistake
        let _ = self.table.whole().clear(); // a mistake
        let _ = self.dict.shared().contains_key(&key); // a mistake
        let _ = self.dict.shared().insert(key, 1); // a mistake
        let _ = self.dict.shared().put(key, 1); // a mistake
        let _ = self.dict.shared().get_mut(&key); // a mistake
        let _ = self.dict.shared().remove(&key); // a mistake
        let _ = self.dict.shared().entry(key); // a mistake
        let _ = self.dict.shared().update(key, |value| *value += 1); // a mistake
        let _ = self.table.shared().get(&key); // a mistake
        let _ = self.table.shared().contains(&key); // a mistake
        let _ = self.table.shared().contains_key(&key); // a mistake
        let _ = self.table.shared().values(); // a mistake
        let _ = self.table.shared().insert(key, 1); // a mistake
        let _ = self.table.shared().put(key, 1); // a mistake
        let _ = self.table.shared().get_mut(&key); // a mistake
        let _ = self.table.shared().remove(&key); // a mistake
        let _ = self.table.shared().entry(key); // a mistake
        let _ = self.table.shared().at(key).contains_key(&key); // a mistake
        let _ = self.table.shared().at(key).insert(key, 1); // a mistake
        let _ = self.table.shared().at(key).get_mut(&key); // a mistake
        let _ = self.table.shared().at(key).remove(&key); // a mistake
        let _ = self.table.shared().at(key).entry(key); // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
