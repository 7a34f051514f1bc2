#[handlers]
impl T {
    #[rcv(sharded)]
    fn count(&mut self, _: &Msg) {
        *self.d.entry(0).or_insert(0) += 1;
    }
    #[rcv(sharded)]
    fn one(&mut self, m: &Other) {
        self.e.put(m.a, 1);
    }
    #[rcv]
    fn all(&mut self, _: &Timeout, ctx: &mut Ctx) {
        ctx.emit(self.e.whole().len());
    }
}
