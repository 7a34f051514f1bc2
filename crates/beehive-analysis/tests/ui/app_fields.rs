#[derive(App)]
struct T {
    d: Dict<u64, u64>,
    limit: u64,
    by_alias: Macs,
    #[volatile]
    config: Config<Settings>,
    cache: std::collections::HashMap<u64, u64>,
}
