#[handlers]
impl Default for T {
    fn default() -> T {
        T {}
    }
}
