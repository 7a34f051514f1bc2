#[handlers]
impl Shop {
    #[rcv]
    fn order(&mut self, msg: &Order) {
        for item in &msg.items {
            let _ = attempt! {
                if self.stock.get(item).is_none() {
                    continue;
                }
                if msg.urgent {
                    return;
                }
                Ok(())
            };
        }
    }
}
