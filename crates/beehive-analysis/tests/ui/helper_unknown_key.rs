#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let key = self.elsewhere(m.a);
        self.d.put(key, 1);
    }
}
