#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.d.put(shard_of(m.a), 1);
    }
}
