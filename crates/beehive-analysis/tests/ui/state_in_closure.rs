#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let known: Vec<_> = m.items.iter().filter(|x| self.d.contains(*x)).collect();
    }
}
