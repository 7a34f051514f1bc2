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
    fn count(&mut self, msg: &Count) {
        self.counts.put(msg.0 1); // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Counters>();
}
