#[handlers]
impl T {
    #[rcv]
    fn transfer(&mut self, m: &Msg) {
        self.d.remove(&m.from);
        self.d.put(m.to, 1);
    }
}
