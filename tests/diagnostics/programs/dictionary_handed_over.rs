use beehive::prelude::*;

#[derive(Message)]
struct Reset(u64);

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

fn reset(counts: &mut Dict<u64, u64>, key: u64) {
    counts.put(key, 0);
}

#[handlers]
impl Counters {
    #[rcv]
    fn reset(&mut self, msg: &Reset) {
        reset(&mut self.counts, msg.0) // a mistake
    }
}

fn main() {
    let _ = Hive::builder().app::<Counters>();
}
