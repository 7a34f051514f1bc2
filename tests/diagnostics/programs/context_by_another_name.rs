use beehive::prelude::*;

#[derive(Message)]
struct Count(u64);

type Context = Ctx;
use beehive::prelude::Ctx as Cx;

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv]
    fn count(&mut self, msg: &Count, ctx: &mut Context) { // a mistake
        *self.counts.entry(msg.0).or_default() += 1;
        ctx.emit(Count(msg.0));
    }

    #[every("1s")]
    fn tick(&mut self, ctx: &mut Cx) { // a mistake
        ctx.emit(Count(1));
    }

    #[rcv(each = counts)]
    fn all(&mut self, key: &u64, _: &Count, ctx: &mut Context) { // a mistake
        ctx.emit(Count(*key));
    }
}

fn main() {
    let _ = Hive::builder().app::<Counters>();
}
