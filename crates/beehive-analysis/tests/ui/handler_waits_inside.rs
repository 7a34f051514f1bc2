#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        async { self.d.put(m.a, 1) };
    }
}
