#[handlers]
impl Shop {
    #[rcv(map = Self::places)]
    fn order(&mut self, msg: &Order) {
        self.stock.put(msg.item, 1);
    }
    fn places(&self, msg: &Order, mapper: &mut Mapper) {}
}
