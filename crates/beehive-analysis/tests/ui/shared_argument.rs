#[derive(App)]
struct T {
    #[shared(max_age = "soon")]
    d: Dict<u64, u64>,
}
