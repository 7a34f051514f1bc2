#[derive(App)]
#[app(persistent)]
struct T {}
