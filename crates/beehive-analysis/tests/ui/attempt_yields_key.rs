#[handlers]
impl Shop {
    #[rcv]
    fn order(&mut self, msg: &Order) {
        let found = attempt! { Ok(*self.place.get(&msg.item).ok_or("unknown")?) };
        if let Ok(place) = found {
            self.stock.put(place, 1);
        }
    }
}
