#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        reconcile(self, m);
    }
}
