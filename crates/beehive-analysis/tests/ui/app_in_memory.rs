#[derive(App)]
#[app(in_memory, replication = 3)]
struct Copied {}

#[derive(App)]
#[app(in_memory = true)]
struct Valued {}
