#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        Self::link(m.a);
    }
    fn link(&self, a: u64) -> u64 {
        a * 2
    }
}
