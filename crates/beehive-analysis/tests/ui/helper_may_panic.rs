#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        if self.d.contains(&m.a) {
            self.first(m);
        }
    }
    fn first(&mut self, m: &Msg) {
        self.e.put(m.items[0], 1);
    }
}
