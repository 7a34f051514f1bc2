#[derive(App)]
struct T {
    #[volatile(1)]
    d: Dict<u64, u64>,
}
