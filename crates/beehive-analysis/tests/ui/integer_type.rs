#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let mut n = 0;
        for _ in &m.items {
            n += 1;
        }
        self.d.put(m.a, n);
        self.e.put(n.min(9), 1);
    }

    #[rcv]
    fn g(&mut self, m: &Other) {
        let n = 3;
        self.d.put(m.a, n);
        self.e.put((n << 33) as u64 % 7, 1);
    }

    #[rcv]
    fn f(&mut self, m: &Third) {
        let n = 5_000_000_000;
        self.d.put(m.a, n);
        self.e.put(n as u64, 1);
    }
}
