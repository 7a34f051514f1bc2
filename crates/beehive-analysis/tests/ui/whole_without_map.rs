#[handlers]
impl T {
    #[rcv(whole(d))]
    fn h(&mut self, m: &Msg) {
        self.d.put(m.a, 1);
    }
}
