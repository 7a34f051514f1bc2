#[handlers]
impl T {
    #[rcv]
    fn h(&mut self, m: &Msg) {
        let mut ids = vec![m.a, m.b];
        let first = ids.first_mut();
        if self.d.contains(&m.a) {
            if let Some(id) = first {
                self.e.put(*id, 1);
            }
        } else if let Some(id) = first {
            self.d.put(*id, 1);
        }
    }
}
