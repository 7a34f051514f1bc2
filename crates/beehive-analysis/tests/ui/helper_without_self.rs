#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.twice(m.a);
    }
    fn twice(a: u64) -> u64 {
        a * 2
    }
}
