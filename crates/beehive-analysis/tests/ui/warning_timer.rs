#[handlers]
impl T {
    #[every("10s", each = d)]
    fn age(&mut self, key: &u64) {
        self.d.remove(key);
        *self.e.entry(0).or_insert(0) += 1;
    }
}
