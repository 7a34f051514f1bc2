#[handlers]
impl T {
    #[rcv(sharded)]
    fn h(&mut self, m: &Msg) {
        *self.d.entry(0).or_insert(0) += 1;
    }
}
