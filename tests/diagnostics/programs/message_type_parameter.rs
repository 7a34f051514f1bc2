use beehive::prelude::*;

#[derive(Message)]
struct Put<T>(T);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn put(&mut self, Put(item): &Put<T>) { // a mistake
        self.stock.put(*item, 1);
    }
}
