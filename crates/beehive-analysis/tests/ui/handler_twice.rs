#[handlers]
impl T {
    #[rcv]
    fn one(&mut self, m: &Msg) {}
    #[rcv]
    fn two(&mut self, m: &Msg) {}
}
