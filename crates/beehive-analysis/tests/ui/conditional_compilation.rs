#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let k = m.a;
        #[cfg(test)]
        let k = m.b;
        self.d.put(k, 1);
    }
}
