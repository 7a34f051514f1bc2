#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let k = if self.d.contains(&m.a) { m.a } else { m.b };
        self.e.put(k, 1);
    }
}
