//! Order of messages while a bee is not running, because a turn has ended or because the bee is idle.

use crate::load::{On, credits_are_back, eventually, on_workers, start};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Io, Message, handlers};
use std::time::Duration;

#[derive(Message)]
struct Numbered {
    key: u64,
    number: u64,
    milliseconds: u64,
}
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Numbers(u64);
/// Emits messages for other cells, from a cell that stays empty.
#[derive(Message)]
struct Relay {
    key: u64,
    keys: Vec<u64>,
    number: u64,
}
#[derive(Message)]
struct Listed {
    keys: Vec<u64>,
    number: u64,
    milliseconds: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct List(u64);
#[derive(Message)]
#[message(reply = ())]
struct Put {
    key: u64,
    number: u64,
}
/// Stores a value in these cells, so one bee owns them and does not retire.
#[derive(Message)]
struct Keep {
    keys: Vec<u64>,
}
/// Sets a timer.
#[derive(Message)]
struct Ring {
    at: u64,
    keys: Vec<u64>,
    number: u64,
    milliseconds: u64,
}
/// Sets a timer for number 2, and one for number 3 a little later.
#[derive(Message)]
struct Later {
    at: u64,
    both: Vec<u64>,
    one: u64,
}

/// Counts messages, and those out of order.
#[derive(App)]
struct Ledger {
    /// The next expected number, and how often a different number arrived.
    next: Dict<u64, (u64, u64)>,
    lists: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Ledger {
    #[rcv(sharded)]
    fn numbered(&mut self, msg: &Numbered) {
        let next = self.next.entry(msg.key).or_default();
        next.1 += (next.0 != msg.number) as u64;
        next.0 = msg.number + 1;
        std::thread::sleep(Duration::from_millis(msg.milliseconds))
    }
    #[rcv(sharded)]
    fn numbers(&mut self, msg: &Numbers) -> (u64, u64) {
        self.next.get(&msg.0).copied().unwrap_or_default()
    }
    #[rcv(joins)]
    fn listed(&mut self, msg: &Listed) {
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        for key in &msg.keys {
            self.lists.entry(*key).or_default().push(msg.number)
        }
    }
    #[rcv(sharded)]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        let _ = self.lists.contains(&msg.at);
        let listed = |keys, number| Listed { keys, number, milliseconds: 0 };
        ctx.after(Duration::from_millis(20), listed(msg.both.clone(), 2));
        ctx.after(Duration::from_millis(22), listed(vec![msg.one], 3));
    }
    #[rcv(sharded)]
    fn ring(&mut self, msg: &Ring, ctx: &mut Ctx) {
        let _ = self.lists.contains(&msg.at);
        let rings = Listed { keys: msg.keys.clone(), number: msg.number, milliseconds: 0 };
        ctx.after(Duration::from_millis(msg.milliseconds), rings)
    }
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) {
        self.lists.entry(msg.key).or_default().push(msg.number)
    }
    #[rcv(sharded)]
    fn list(&mut self, msg: &List) -> Vec<u64> {
        self.lists.get(&msg.0).cloned().unwrap_or_default()
    }
}
#[derive(App)]
struct Relays {
    nothing: Dict<u64, u64>,
}
#[handlers]
impl Relays {
    #[rcv(sharded)]
    fn relay(&mut self, msg: &Relay, ctx: &mut Ctx) {
        let _ = self.nothing.contains(&msg.key);
        ctx.emit(Listed { keys: msg.keys.clone(), number: msg.number, milliseconds: 0 })
    }
    #[rcv(joins)]
    fn keep(&mut self, msg: &Keep) {
        for key in &msg.keys {
            *self.nothing.entry(*key).or_default() += 1
        }
    }
}

const LIMIT: Duration = Duration::from_secs(20);

/// A bee has more messages than one turn can handle, and further messages arrive.
#[test]
fn order_is_kept_over_the_end_of_a_turn() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Ledger>(), On::Memory);
        let mut number = 0;
        for _ in 0..3 {
            let mut io = hive.io_with_credits(1_000_000);
            let mut emit = |io: &mut Io, count: u64, milliseconds: u64| {
                for _ in 0..count {
                    io.emit(Numbered { key: 1, number, milliseconds });
                    number += 1
                }
            };

            emit(&mut io, 1, 50);
            io.flush().await;
            for _ in 0..40 {
                emit(&mut io, 1_000, 0);
                io.flush().await
            }

            // These messages arrive while the bee is running.
            for _ in 0..2_000 {
                emit(&mut io, 1, 0);
                io.flush().await
            }

            credits_are_back(&hive, &[&io], 1_000_000).await
        }

        assert_eq!(hive.request(Numbers(1)).await, Ok((number, 0)));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// An empty bee does not retire while one of its messages waits for a merge, because the next owner of its
/// cell would not know about that message.
#[test]
fn messages_of_a_cell_keep_their_order_when_its_bee_was_idle() {
    on_workers(3, async {
        let (hive, _) = start(Hive::builder().app::<Relays>().app::<Ledger>(), On::Memory);
        for key in [1, 2] {
            hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
        }

        assert_eq!(hive.request(List(2)).await, Ok(vec![0]));
        // Delays the merge for longer than idle bees live.
        hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 600 }).await;
        hive.emit(Relay { key: 7, keys: vec![1, 2], number: 2 }).await;
        tokio::time::sleep(Duration::from_millis(350)).await;
        hive.emit(Relay { key: 7, keys: vec![2], number: 3 }).await;
        hive.emit(Relay { key: 7, keys: vec![1], number: 4 }).await;
        for (key, want) in [(1, vec![0, 1, 2, 4]), (2, vec![0, 2, 3])] {
            let mut got = Vec::new();
            for _ in 0..400 {
                got = hive.request(List(key)).await.unwrap();
                if got.len() >= want.len() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await
            }

            assert_eq!(got, want, "key {key}");
        }

        hive.stop(Duration::from_secs(5)).await;
    })
}

/// If a sender merges with another bee, its blocked messages stay in order, and later messages to the same
/// cells stay behind them.
#[test]
fn messages_of_a_cell_keep_their_order_when_its_bee_merges() {
    // In both merge directions.
    for (first, joined) in [(7, 8), (8, 7)] {
        on_workers(3, async {
            let (hive, _) = start(Hive::builder().app::<Relays>().app::<Ledger>(), On::Memory);
            for key in [1, 2] {
                hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
            }

            for key in [7, 8] {
                hive.emit(Keep { keys: vec![key] }).await
            }

            assert_eq!(hive.request(List(2)).await, Ok(vec![0]));
            // Delays the merge that the first message needs.
            hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 400 }).await;
            hive.emit(Relay { key: first, keys: vec![1, 2], number: 2 }).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            hive.emit(Keep { keys: vec![first, joined] }).await;
            eventually("the merge", LIMIT, || hive.status().apps[0].bees_merged == 1).await;
            hive.emit(Relay { key: first, keys: vec![2], number: 3 }).await;
            hive.emit(Relay { key: first, keys: vec![1], number: 4 }).await;
            hive.idle().await;
            for (key, want) in [(1, vec![0, 1, 2, 4]), (2, vec![0, 2, 3])] {
                assert_eq!(hive.request(List(key)).await, Ok(want), "key {key}")
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// Two timers of one bee fire in order, even if the first message has to wait for a merge.
#[test]
fn a_timer_does_not_overtake_one_that_rang_before() {
    on_workers(3, async {
        let (hive, _) = start(Hive::builder().app::<Ledger>(), On::Memory);
        for key in [1, 2] {
            hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
        }

        assert_eq!(hive.request(List(2)).await, Ok(vec![0]));
        hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 300 }).await;
        hive.emit(Later { at: 7, both: vec![1, 2], one: 2 }).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        hive.idle().await;
        for (key, want) in [(1, vec![0, 1, 2]), (2, vec![0, 2, 3])] {
            assert_eq!(hive.request(List(key)).await, Ok(want), "key {key}")
        }

        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A timer set before a merge fires before one set for the same cell after the merge.
#[test]
fn a_timer_set_before_a_merge_is_not_overtaken_by_one_set_after_it() {
    for (first, joined) in [(7, 8), (8, 7)] {
        on_workers(3, async {
            let (hive, _) = start(Hive::builder().app::<Ledger>(), On::Memory);
            for key in [1, 2, 7, 8] {
                hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
            }

            assert_eq!(hive.request(List(2)).await, Ok(vec![0]));
            hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 700 }).await;
            hive.emit(Ring { at: first, keys: vec![1, 2], number: 2, milliseconds: 150 }).await;
            hive.emit(Ring { at: first, keys: vec![2], number: 4, milliseconds: 350 }).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            hive.emit(Listed { keys: vec![first, joined], number: 1, milliseconds: 0 }).await;
            eventually("the merge", LIMIT, || hive.status().apps[0].bees_merged == 1).await;
            hive.emit(Ring { at: first, keys: vec![2], number: 3, milliseconds: 150 }).await;
            tokio::time::sleep(Duration::from_millis(400)).await;
            hive.idle().await;
            for (key, want) in [(1, vec![0, 1, 2]), (2, vec![0, 2, 3, 4])] {
                assert_eq!(hive.request(List(key)).await, Ok(want), "key {key}")
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// After a crash, messages that a bee sent before and after it merged are resent in order.
#[test]
fn messages_of_a_merged_bee_are_resent_in_order() {
    for (first, joined) in [(7, 8), (8, 7)] {
        let log = on_workers(3, async {
            let journal = TestJournal::start(5, 0, 0);
            let builder = Hive::builder().app::<Relays>().app::<Ledger>().seed(1);
            let hive = builder.journal(journal.clone(), LogState::default()).start().unwrap();
            for key in [1, 2] {
                hive.request_within(LIMIT, Put { key, number: 0 }).await.unwrap();
            }

            for key in [7, 8] {
                hive.emit(Keep { keys: vec![key] }).await
            }

            hive.idle().await;
            hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 400 }).await;
            hive.emit(Relay { key: first, keys: vec![1, 2], number: 2 }).await;
            hive.emit(Keep { keys: vec![first, joined] }).await;
            eventually("the merge", LIMIT, || hive.status().apps[0].bees_merged == 1).await;
            hive.emit(Relay { key: first, keys: vec![2], number: 3 }).await;
            hive.emit(Relay { key: first, keys: vec![1], number: 4 }).await;
            tokio::time::sleep(Duration::from_millis(100)).await;

            // Kill the hive while the first message waits.
            journal.stop();
            hive.stop(Duration::ZERO).await;
            journal.log()
        });

        on_workers(3, async {
            let colony = crate::load::killed(&log);
            assert!(colony.outbox.len() >= 3, "what waits is in the log: {:?}", colony.outbox.keys());

            let journal = TestJournal::start(6, 0, colony.last);
            let builder = Hive::builder().app::<Relays>().app::<Ledger>().seed(1);
            let hive = builder.journal(journal.clone(), colony).start().unwrap();

            // Messages from outside may be lost with the process.
            hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 0 }).await;
            let mut lists = (Vec::new(), Vec::new());

            for _ in 0..400 {
                lists = (hive.request(List(1)).await.unwrap(), hive.request(List(2)).await.unwrap());
                if lists.0.contains(&4) && lists.1.contains(&3) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await
            }

            lists.0.retain(|number| *number != 1);
            assert_eq!(lists, (vec![0, 2, 4], vec![0, 2, 3]));
            journal.stop();
            hive.stop(Duration::ZERO).await;
        })
    }
}
