use beehive::prelude::*;

#[derive(App)]
#[app(replication = "3")] // a mistake
struct Copied {
    counts: Dict<u64, u64>,
}

#[derive(App)]
struct Few {
    #[rows(max = 3, evict = "first")] // a mistake
    rows: Table<u64, u64, u64>,
}

#[derive(App)]
struct Fewer {
    #[rows(max = "3")] // a mistake
    rows: Table<u64, u64, u64>,
}

fn main() {}
