#[handlers]
impl T {
    #[rcv]
    fn h<M: Message>(&mut self, m: &M) {}
}
