#[handlers]
impl T {
    #[rcv(shard)]
    fn h(&mut self, m: &Msg) {
        self.d.put(m.a, 1);
    }
}
