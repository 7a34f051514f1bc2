#[handlers]
impl T {
    #[every]
    fn tick(&mut self) {}
}
