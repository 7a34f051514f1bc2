struct Message {
    key: u64,
}

struct App {
    table: Dict<u64, u64>,
}

#[handlers]
impl App {
    #[rcv]
    fn h(&mut self, msg: &Message) {
        for (key, _) in &self.table {
            if *key > msg.key {
                break;
            }
        }
    }
}
