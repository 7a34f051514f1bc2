#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg, ctx: &mut Ctx) {
        self.d.put(m.a + ctx.now(), 1);
    }
}
