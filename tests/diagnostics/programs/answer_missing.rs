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
    fn count(&mut self, msg: &Count) { // a mistake
        *self.counts.entry(msg.0).or_default() += 1;
    }
}

fn main() {
    let _ = Hive::builder().app::<Counters>();
}
