#[handlers]
impl T {
    #[every("1s", each = d)]
    fn tick(&mut self) {}
}
