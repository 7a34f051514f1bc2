use beehive::prelude::*;

#[derive(Message)]
struct Count(u64);

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv]
    fn count(&mut self, msg: &Count) -> u64 { // a mistake
        self.counts.get(&msg.0).copied().unwrap_or_default()
    }
}

fn main() {
    let _ = Hive::builder().app::<Counters>();
}
