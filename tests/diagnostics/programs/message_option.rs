use beehive::prelude::*;

#[derive(Message)]
#[message(answer = u64)] // a mistake
struct Count(u64);

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv]
    fn count(&mut self, msg: &Count) -> Option<u64> {
        self.counts.get(&msg.0).copied()
    }
}

async fn ask(hive: Hive) -> u64 {
    hive.request(Count(1)).await.unwrap_or_default()
}

fn main() {
    let _ = Hive::builder().app::<Counters>();
}
