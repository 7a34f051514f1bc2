#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) -> Option<u64> {
        self.names.put(format!("{}", m.name?), 1);
        None
    }
}
