#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        if matches!(m.a, x if self.d.contains(&x)) {
            self.e.put(m.a, 1);
        }
    }
}
