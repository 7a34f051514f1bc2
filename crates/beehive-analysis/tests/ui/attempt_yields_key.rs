#[handlers]
impl Shop {
    #[rcv]
    fn order(&mut self, msg: &Order) {
        let found = attempt! { Ok(*self.d.get(&msg.item).ok_or("unknown")?) };
        if let Ok(place) = found {
            self.e.put(place, 1);
        }
    }
}
