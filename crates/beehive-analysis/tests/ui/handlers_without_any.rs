struct Message {
    key: u64,
}

struct App {
    table: Dict<u64, u64>,
}

#[handlers]
impl App {
    fn h(&mut self, msg: &Message) {
        self.table.remove(&msg.key);
    }
}
