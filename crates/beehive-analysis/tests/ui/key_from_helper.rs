#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.e.put(self.next(m.a), 1);
    }
    fn next(&self, a: u64) -> u64 {
        self.d.get(&a).copied().unwrap_or(0)
    }
}
