#[derive(App)]
#[app(name = "Not Kebab")]
struct T {}
