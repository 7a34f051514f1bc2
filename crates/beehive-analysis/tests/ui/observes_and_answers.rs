#[handlers]
impl T {
    #[rcv(observes)]
    fn h(&mut self, m: &Msg) -> Option<u64> {
        self.d.put(m.a, 1)
    }
}
