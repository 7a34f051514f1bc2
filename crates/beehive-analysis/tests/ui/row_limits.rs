#[derive(App)]
#[app(cells = 0)]
struct NoCells {}

#[derive(App)]
struct Limits {
    #[rows(max = 10, evict = oldest)]
    oldest: Table<u64, u64, u64>,
    #[rows(evict = first)]
    unlimited: Table<u64, u64, u64>,
    #[rows(max = 10)]
    no_rows: Dict<u64, u64>,
}
