#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.d.put(place, m.a);
    }
}
