#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        if let key!(a) = m.a {
            self.d.put(a, 1);
        }
    }
}
