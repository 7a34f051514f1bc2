//! Nothing is overtaken where a bee is left for a while: at the end of a turn, or because it is idle.

use crate::load::{On, credits_are_back, on_workers, start};
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
/// Emits, for a cell that stays empty.
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

/// Counts what came, and what came out of its order.
#[derive(App)]
struct Ledger {
    /// The number that comes next, and how often another one came.
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
}

/// More than one turn can take lies at one bee while more of it comes.
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
            // what comes while the bee is at it
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

/// A bee without content stays as long as something it emitted waits for a merge: its cell's next bee would not know.
#[test]
fn what_a_cell_emitted_is_not_overtaken_by_what_it_emits_after_its_bee_was_idle() {
    on_workers(3, async {
        let (hive, _) = start(Hive::builder().app::<Relays>().app::<Ledger>(), On::Memory);
        for key in [1, 2] {
            hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
        }
        assert_eq!(hive.request(List(2)).await, Ok(vec![0]));
        // holds up the merge for longer than idle bees live
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
