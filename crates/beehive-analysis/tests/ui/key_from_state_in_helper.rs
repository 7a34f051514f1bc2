#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let next = self.d.get(&m.a).copied().unwrap_or(0);
        self.link(m.a, next);
    }
    fn link(&mut self, from: u64, to: u64) {
        self.e.put(from, to);
        self.e.put(to, from);
    }
}
