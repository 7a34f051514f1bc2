#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        if self.d.contains(&m.a) {
            self.e.put(m.items[0], 1);
        }
    }
}
