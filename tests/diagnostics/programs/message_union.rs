use beehive::prelude::*;

#[derive(Message)]
union Count { // a mistake
    a: u64,
}

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv]
    fn count(&mut self, _msg: &Count, ctx: &mut Ctx) {
        ctx.emit(Count { a: 1 });
    }
}

fn main() {
    let _ = Hive::builder().app::<Counters>();
}
