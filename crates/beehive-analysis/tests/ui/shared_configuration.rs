#[derive(App)]
struct T {
    #[shared]
    c: Config<u64>,
}
