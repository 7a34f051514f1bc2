#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        bump!(self.d, m.a);
    }
}
