#[handlers]
impl T {
    #[rcv]
    fn count(&mut self, m: &Msg) {
        *self.d.entry(0).or_insert(0) += 1;
        self.e.put(m.a, 1);
    }
    #[rcv]
    fn transfer(&mut self, m: &Other) {
        self.e.remove(&m.from);
        self.e.put(m.to, 1);
    }
}
