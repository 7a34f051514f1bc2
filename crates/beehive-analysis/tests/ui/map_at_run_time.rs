#[handlers]
impl T {
    #[rcv(map = runtime)]
    fn h(&mut self, m: &Msg) {
        self.d.put(m.a, 1);
    }
}
