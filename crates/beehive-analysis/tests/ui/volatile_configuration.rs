#[derive(App)]
struct T {
    #[volatile]
    config: Config<Settings>,
}
