#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: Msg) {}
}
