#[handlers]
impl T {
    #[rcv(sharded)]
    fn h(&mut self, _: &Msg, ctx: &mut Ctx) {
        ctx.emit(self.d.whole().len());
    }
}
