#[derive(App)]
struct T(Dict<u64, u64>);
