#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let shard = shard_of(m.a);
        self.d.put(shard, 1);
    }
}
