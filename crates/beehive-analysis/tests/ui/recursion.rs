#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.walk(m.a);
    }
    fn walk(&mut self, k: u64) {
        self.d.put(k, 1);
        self.walk(k + 1);
    }
}
