#[handlers]
impl T {
    #[rcv]
    async fn h(&mut self, m: &Msg) {}
}
