#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let mut k = m.a;
        let view = &mut k;
        adjust(view);
        self.d.put(k, 1);
    }
}
