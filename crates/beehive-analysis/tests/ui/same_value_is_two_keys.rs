#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let mut n = 0;
        for x in &m.items {
            if self.d.contains(x) {
                break;
            }
            n += 1;
        }
        self.e.put(n, 1);
        self.d.remove(&n);
    }
}
