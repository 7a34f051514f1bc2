#[derive(App)]
struct T {
    d: Dict<u64, u64>,
    limits: Config<Limits>,
    names: Config<Names>,
}
