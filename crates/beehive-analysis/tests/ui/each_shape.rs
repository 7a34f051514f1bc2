#[handlers]
impl T {
    #[rcv(each = d)]
    fn sweep(&mut self, m: &Msg) {}
}
