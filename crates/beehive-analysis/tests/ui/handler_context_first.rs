#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, ctx: &mut Ctx, m: &Msg) {}
}
