#[handlers]
impl T {
    #[rcv(broadcast)]
    fn h(&mut self, m: &Msg) {
        self.d.put(m.a, 1);
    }
}
