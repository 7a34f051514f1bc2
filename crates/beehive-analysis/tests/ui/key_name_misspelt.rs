#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let item = m.a;
        self.d.put(itm, 1);
        self.e.put(itm, item);
    }
}
