use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
struct Count(u64);

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv]
    async fn count(&mut self, msg: &Count) -> Option<u64> { // a mistake
        self.counts.get(&msg.0).copied()
    }
}

fn main() {
    let _ = Hive::builder().app::<Counters>();
}
