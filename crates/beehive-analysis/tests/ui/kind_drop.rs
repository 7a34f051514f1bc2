#[handlers]
impl T {
    #[rcv(stateless)]
    fn h(&mut self, m: &Msg) {
        let _twice = m.a * 2;
    }
}
