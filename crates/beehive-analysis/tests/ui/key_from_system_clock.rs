#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let now = std::time::SystemTime::now();
        self.d.put(now, m.a);
    }
}
