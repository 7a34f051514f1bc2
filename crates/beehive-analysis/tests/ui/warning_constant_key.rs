#[handlers]
impl T {
    #[rcv]
    fn count(&mut self, m: &Msg) {
        *self.d.entry(0).or_insert(0) += 1;
    }
}
