#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let next = self.d.get(&m.a).copied().unwrap_or(0);
        self.e.put(next, 1);
    }
}
