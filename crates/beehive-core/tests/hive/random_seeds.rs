//! Handlers that run for different messages draw different random numbers.

use crate::load::{EVERYWHERE, on_workers, start};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Message)]
struct One(u64);
#[derive(Message)]
struct Other(u64);
/// Emits one message of each type to two cells.
#[derive(Message)]
struct Both(u64);
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Drawn(u64);

#[derive(App)]
struct Draws {
    drawn: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Draws {
    #[rcv(sharded)]
    fn one(&mut self, msg: &One, ctx: &mut Ctx) {
        self.drawn.entry(msg.0).or_default().push(ctx.rng().next_u64())
    }
    #[rcv(sharded)]
    fn other(&mut self, msg: &Other, ctx: &mut Ctx) {
        self.drawn.entry(msg.0).or_default().push(ctx.rng().next_u64())
    }
    #[rcv(sharded)]
    fn both(&mut self, msg: &Both, ctx: &mut Ctx) {
        self.drawn.entry(msg.0).or_default().push(ctx.rng().next_u64());
        for key in 0..2 {
            ctx.emit(Other(key));
            ctx.emit(One(key))
        }
    }
    #[rcv(sharded)]
    fn drawn(&mut self, msg: &Drawn) -> Vec<u64> {
        self.drawn.get(&msg.0).cloned().unwrap_or_default()
    }
}

#[test]
fn no_two_messages_of_a_sender_get_the_same_seed() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Draws>(), on);
            let mut io = hive.io();
            for _ in 0..3 {
                for key in 0..2 {
                    io.emit(One(key));
                    io.emit(Other(key));
                    io.emit(Both(key))
                }
                io.flush().await;

                io.emit(One(0));
                io.emit(Other(1));
                io.flush_control()
            }
            hive.idle().await;

            let mut drawn = hive.request(Drawn(0)).await.unwrap();
            drawn.extend(hive.request(Drawn(1)).await.unwrap());
            assert_eq!(drawn.len(), 3 * (6 + 2 * 4 + 2), "{on:?}");
            let distinct: BTreeSet<_> = drawn.iter().collect();
            assert_eq!(distinct.len(), drawn.len(), "{on:?}: {drawn:?}");
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}
