#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let mut k = m.a;
        debug!("{k}");
        self.d.put(k, 1);
    }
}
