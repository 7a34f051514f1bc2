#[handlers]
impl T {
    #[rcv]
    fn order(&mut self, ctx: &mut Ctx, m: &Msg) {}
    #[rcv]
    fn owned(&mut self, m: Other) {}
    #[rcv]
    async fn waits(&mut self, m: &Timeout) {}
    #[rcv(each = d)]
    fn sweep(&mut self, m: &Msg) {}
    #[every("sometimes")]
    fn tick(&mut self) {}
}
