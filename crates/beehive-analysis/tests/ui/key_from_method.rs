#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.d.put(m.id.load(Ordering::Relaxed), 1);
    }
}
