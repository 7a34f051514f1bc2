use beehive::prelude::*;

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

fn main() {
    let _ = Hive::builder().app::<Counters>(); // a mistake
}
