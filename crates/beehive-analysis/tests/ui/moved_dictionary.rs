#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        std::mem::swap(&mut self.d, &mut self.e);
        self.d.put(m.a, 1);
    }
    #[rcv]
    fn alias(&mut self, m: &Other) {
        let (d, e) = (&mut self.d, &mut self.e);
        d.put(m.a, 1);
        std::mem::swap(d, e)
    }
}
