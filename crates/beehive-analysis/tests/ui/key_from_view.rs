#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let routes = self.d.shared();
        let next = routes.get(&m.a).copied().unwrap_or(0);
        self.e.put(next, 1);
    }
}
