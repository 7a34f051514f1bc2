#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.count(&m.items, m.a);
        self.shift(&m.items, m.a);
        self.large(&m.items, m.a);
    }

    fn count<I>(&mut self, items: &[I], a: u64) {
        let mut n = 0;
        for _ in items {
            n += 1;
        }
        self.d.put(a, n);
        self.e.put(n.min(9), 1);
    }

    fn shift<I>(&mut self, _: &[I], a: u64) {
        let n = 3;
        self.d.put(a, n);
        self.e.put((n << 33) as u64 % 7, 1);
    }

    fn large<I>(&mut self, _: &[I], a: u64) {
        let n = 5_000_000_000;
        self.d.put(a, n);
        self.e.put(n as u64, 1);
    }
}
