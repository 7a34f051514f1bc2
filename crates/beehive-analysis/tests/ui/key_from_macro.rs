#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        self.d.put(my_key!(m), 1);
    }
}
