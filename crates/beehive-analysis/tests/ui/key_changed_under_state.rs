#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let mut k = m.a;
        if self.d.contains(&m.a) {
            k += 1;
        }
        self.e.put(k, 1);
    }
}
