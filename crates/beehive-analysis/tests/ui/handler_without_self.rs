#[handlers]
impl T {
    #[rcv]
    fn h(m: &Msg) {}
}
