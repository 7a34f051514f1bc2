#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        macro_rules! put {
            ($k:expr) => {
                self.d.put($k, 1)
            };
        }
        put!(m.a);
    }
}
