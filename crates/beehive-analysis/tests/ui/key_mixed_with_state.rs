#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) -> Option<u64> {
        let mut ids = m.items.iter();
        self.d.put(m.a, *ids.next()?);
        self.e.put(*ids.next()?, 1);
    }
}
