#[handlers]
impl T {
    #[rcv(sharded)]
    fn one(&mut self, m: &Msg) {
        self.d.put(m.a, 1);
    }
    #[rcv]
    fn all(&mut self, _: &Other, ctx: &mut Ctx) {
        ctx.emit(self.d.whole().len());
    }
}
