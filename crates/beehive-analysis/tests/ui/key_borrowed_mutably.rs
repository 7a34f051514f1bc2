#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let mut k = m.a;
        self.adjust(&mut k);
        self.d.put(k, 1);
    }

    fn adjust(&mut self, k: &mut u64) {
        *k += 1;
    }
}
