#[derive(App)]
#[app(durability = "memory", replication = 3)]
struct Copied {}

#[derive(App)]
#[app(durability = "tape")]
struct Other {}

#[derive(App)]
#[app(durability)]
struct Bare {}
