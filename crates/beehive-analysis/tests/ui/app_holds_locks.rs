#[derive(App)]
struct T {
    d: Dict<u64, Arc<Mutex<u64>>>,
    rows: Table<u64, u64, std::sync::Arc<std::sync::atomic::AtomicU64>>,
    clocks: Dict<u64, AtomicClock>,
}
