#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let seen: HashSet<u64> = m.items.iter().copied().collect();
        for k in seen.iter().take(2) {
            self.d.put(*k, 1);
        }
    }
}
