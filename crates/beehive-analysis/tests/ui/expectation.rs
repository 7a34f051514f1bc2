#[handlers]
impl T {
    #[rcv(expect = "d[m.b]")]
    fn h(&mut self, m: &Msg) {
        self.d.put(m.a, 1);
    }
}
