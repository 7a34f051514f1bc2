#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.d.put(SHARDS[0](m.a), 1);
    }
}
