#[derive(App)]
#[app(replication = 0)]
struct T {}
