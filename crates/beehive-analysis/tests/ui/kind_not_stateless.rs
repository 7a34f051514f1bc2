#[handlers]
impl T {
    #[rcv(stateless)]
    fn h(&mut self, m: &Msg) {
        self.d.put(m.a, 1);
    }
}
