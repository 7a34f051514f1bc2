#[handlers]
impl T {
    #[every("sometimes")]
    fn tick(&mut self) {}
}
