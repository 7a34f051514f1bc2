#[derive(App)]
struct T {
    #[volatile]
    #[shared]
    d: Dict<u64, u64>,
}
