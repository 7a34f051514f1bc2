#[derive(App)]
struct T {
    d: Dict<u64, &'static str>,
    rows: Table<u64, &'static str, u64>,
}
