#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let key = m.a;
        show!(key);
        self.d.put(key, 1);
    }
}
