//! Stateless handlers that nest too deeply for one stack: their messages, and later messages of their sender,
//! arrive in the order in which they would arrive with an unlimited stack.

use crate::load::{EVERYWHERE, On, on_workers, start};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers, limits};
use std::time::Duration;

/// A message that is passed on `left` times, and then counted at `key`.
#[derive(Message)]
struct Hop {
    left: usize,
    key: u64,
    number: u64,
}
#[derive(Message)]
struct Put {
    key: u64,
    number: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Get(u64);
/// A message to every list.
#[derive(Message)]
struct Mark {
    number: u64,
}
/// Makes a bee send a hop, then a message directly, then a mark to all lists.
#[derive(Message)]
struct Go {
    left: usize,
    key: u64,
    number: u64,
}
/// Two chains of different lengths, one nested in the other.
#[derive(Message)]
struct Fork {
    left: usize,
    key: u64,
    number: u64,
}

#[derive(App)]
struct Lists {
    lists: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Lists {
    #[rcv(stateless)]
    fn hop(&mut self, msg: &Hop, ctx: &mut Ctx) {
        match msg.left {
            0 => ctx.emit(Put { key: msg.key, number: msg.number }),
            left => ctx.emit(Hop { left: left - 1, key: msg.key, number: msg.number }),
        }
    }
    #[rcv(stateless)]
    fn fork(&mut self, msg: &Fork, ctx: &mut Ctx) {
        let Fork { left, key, number } = *msg;
        if left == 0 {
            return ctx.emit(Put { key, number });
        }
        ctx.emit(Hop { left: left * 2, key, number });
        ctx.emit(Fork { left: left - 1, key, number: number + 1 });
        ctx.emit(Put { key, number: number + 2 * left as u64 });
    }
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) {
        self.lists.entry(msg.key).or_default().push(msg.number)
    }
    #[rcv(each = lists)]
    fn mark(&mut self, key: &u64, msg: &Mark) {
        self.lists.entry(*key).or_default().push(msg.number)
    }
    #[rcv(sharded)]
    fn get(&mut self, msg: &Get) -> Vec<u64> {
        self.lists.get(&msg.0).cloned().unwrap_or_default()
    }
}
#[derive(App)]
struct Starter {
    gone: Dict<u64, u64>,
}
#[handlers]
impl Starter {
    #[rcv(sharded)]
    fn go(&mut self, msg: &Go, ctx: &mut Ctx) {
        *self.gone.entry(msg.key).or_default() += 1;
        ctx.emit(Hop { left: msg.left, key: msg.key, number: 3 * msg.number });
        ctx.emit(Put { key: msg.key, number: 3 * msg.number + 1 });
        ctx.emit(Mark { number: 3 * msg.number + 2 });
    }
}

const DEEP: usize = limits::STATELESS_DEPTH_MAX;
const LEFT: [usize; 6] = [5, DEEP - 2, DEEP - 1, DEEP, 2 * DEEP + 1, 100];
const LIMIT: Duration = Duration::from_secs(60);

fn in_order(what: &str, got: &[u64], count: u64) {
    let wrong = got.windows(2).filter(|pair| pair[0] >= pair[1]).count();
    assert_eq!((got.len() as u64, wrong), (count, 0), "{what}: messages, and those out of their order");
}

async fn from_an_io_bee(on: On) {
    let (hive, _journal) = start(Hive::builder().app::<Lists>(), on);
    for left in LEFT {
        let key = left as u64;
        let mut io = hive.io();
        for number in 0..500 {
            io.emit(Hop { left, key, number: 2 * number });
            if number % 3 == 0 {
                io.flush().await
            }
            io.emit(Put { key, number: 2 * number + 1 });
            if number % 5 == 0 {
                io.flush().await
            }
        }

        io.flush().await;
        hive.idle().await;
        in_order(&format!("{left} hops"), &hive.request_within(LIMIT, Get(key)).await.unwrap(), 1_000);
    }

    hive.stop(Duration::from_secs(5)).await;
}

async fn from_a_bee(on: On) {
    for left in LEFT {
        // A separate hive, because a mark goes to all lists.
        let (hive, _journal) = start(Hive::builder().app::<Lists>().app::<Starter>(), on);
        let mut io = hive.io();

        for number in 0..200 {
            io.emit(Go { left, key: 1, number });
            if number % 7 == 0 {
                io.flush().await
            }
        }

        io.flush().await;
        hive.idle().await;
        in_order(&format!("{left} hops"), &hive.request_within(LIMIT, Get(1)).await.unwrap(), 600);
        hive.stop(Duration::from_secs(5)).await;
    }
}

#[test]
fn deep_messages_of_an_io_bee_are_not_overtaken_by_its_later_ones() {
    on_workers(4, from_an_io_bee(On::Memory))
}

#[test]
fn deep_messages_of_an_io_bee_are_not_overtaken_on_a_journal() {
    on_workers(4, from_an_io_bee(On::Journal))
}

#[test]
fn deep_messages_of_an_io_bee_are_not_overtaken_while_bees_move() {
    on_workers(4, from_an_io_bee(On::Journals))
}

#[test]
fn deep_messages_of_a_bee_are_not_overtaken_by_its_later_ones() {
    on_workers(4, from_a_bee(On::Memory))
}

#[test]
fn deep_messages_of_a_bee_are_not_overtaken_on_a_journal() {
    on_workers(4, from_a_bee(On::Journal))
}

#[test]
fn deep_messages_of_a_bee_are_not_overtaken_while_bees_move() {
    on_workers(4, from_a_bee(On::Journals))
}

/// If a handler emits two messages, everything that the first one causes arrives before everything that the
/// second one causes, no matter how deeply the handlers nest.
#[test]
fn branches_come_one_after_the_other() {
    for on in EVERYWHERE {
        on_workers(4, async {
            let (hive, _journal) = start(Hive::builder().app::<Lists>(), on);
            for left in [3, 7, DEEP, 2 * DEEP] {
                let key = 1_000 + left as u64;
                hive.emit(Fork { left, key, number: 0 }).await;
                hive.idle().await;
                in_order(
                    &format!("{left} forks"),
                    &hive.request_within(LIMIT, Get(key)).await.unwrap(),
                    2 * left as u64 + 1,
                )
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}
