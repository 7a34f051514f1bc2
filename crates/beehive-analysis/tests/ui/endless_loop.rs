#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        for i in m.a.. {
            if self.d.contains(&i) {
                break;
            }
            self.e.put(i, 1);
        }
    }
}
