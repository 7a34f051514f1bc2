#[handlers]
impl T {
    #[every("1s")]
    fn tick(&mut self, m: &Msg) {}
}
