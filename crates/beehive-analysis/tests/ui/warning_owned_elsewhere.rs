#[handlers]
impl T {
    #[rcv]
    fn one(&mut self, m: &Msg) {
        self.d.put(m.a, 1);
    }
    #[rcv(centralized)]
    fn all(&mut self, _: &Other, ctx: &mut Ctx) {
        ctx.emit(self.d.whole().len());
    }
}
