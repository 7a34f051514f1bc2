#[derive(App)]
struct T {
    d: Dict<u64, u64>,
    cache: HashMap<u64, u64>,
}
