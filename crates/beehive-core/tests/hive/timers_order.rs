//! The messages of a cell's timers arrive in the order in which the timers fire, even if the cell's bee
//! retires or merges in the meantime, and even if they pass through stateless handlers.

use crate::load::{On, eventually, on_workers, start};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(20);

#[derive(Message)]
struct Listed {
    keys: Vec<u64>,
    number: u64,
    milliseconds: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct List(u64);
/// Sets a timer for `Listed`.
#[derive(Message)]
struct Ring {
    at: u64,
    keys: Vec<u64>,
    number: u64,
    milliseconds: u64,
}
/// Sets a timer for `Via`.
#[derive(Message)]
struct RingVia {
    at: u64,
    via: (u64, Vec<u64>, u64),
    milliseconds: u64,
}
/// Handled by a stateless handler, which sleeps and emits `Listed`.
#[derive(Message)]
struct Via(u64, Vec<u64>, u64);

#[derive(App)]
struct Ledger {
    lists: Dict<u64, Vec<u64>>,
    nothing: Dict<u64, u64>,
}
#[handlers]
impl Ledger {
    #[rcv(joins)]
    fn listed(&mut self, msg: &Listed) {
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        for key in &msg.keys {
            self.lists.entry(*key).or_default().push(msg.number)
        }
    }
    #[rcv(sharded)]
    fn ring(&mut self, msg: &Ring, ctx: &mut Ctx) {
        let _ = self.lists.contains(&msg.at);
        let rings = Listed { keys: msg.keys.clone(), number: msg.number, milliseconds: 0 };
        ctx.after(Duration::from_millis(msg.milliseconds), rings)
    }
    #[rcv(sharded)]
    fn ring_via(&mut self, msg: &RingVia, ctx: &mut Ctx) {
        let _ = self.lists.contains(&msg.at);
        ctx.after(Duration::from_millis(msg.milliseconds), Via(msg.via.0, msg.via.1.clone(), msg.via.2))
    }
    #[rcv(stateless)]
    fn via(&mut self, msg: &Via, ctx: &mut Ctx) {
        std::thread::sleep(Duration::from_millis(msg.0));
        ctx.emit(Listed { keys: msg.1.clone(), number: msg.2, milliseconds: 0 })
    }
    #[rcv(sharded)]
    fn list(&mut self, msg: &List) -> Vec<u64> {
        self.lists.get(&msg.0).cloned().unwrap_or_default()
    }
}

async fn lists(hive: &Hive, want: [(u64, Vec<u64>); 2]) {
    for (key, want) in want {
        let mut got = Vec::new();
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            got = hive.request_within(LIMIT, List(key)).await.unwrap();
            if got.len() >= want.len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await
        }

        assert_eq!(got, want, "key {key}");
    }
}

/// Between two timers, the cell is empty and its bee is idle for a while.
fn retirement(on: On) {
    on_workers(3, async {
        let (hive, _journal) = start(Hive::builder().app::<Ledger>(), on);
        for key in [1, 2] {
            hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
        }

        hive.idle().await;
        hive.emit(Ring { at: 7, keys: vec![1, 2], number: 2, milliseconds: 700 }).await;
        // Longer than idle bees live.
        tokio::time::sleep(Duration::from_millis(350)).await;
        hive.emit(Ring { at: 7, keys: vec![2], number: 3, milliseconds: 550 }).await;
        hive.idle().await;
        hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 1_200 }).await;
        tokio::time::sleep(Duration::from_millis(900)).await;
        hive.idle().await;
        lists(&hive, [(1, vec![0, 1, 2]), (2, vec![0, 2, 3])]).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn timers_of_a_cell_that_was_idle() {
    retirement(On::Memory)
}
#[test]
fn timers_of_a_cell_that_was_idle_in_a_journaled_hive() {
    retirement(On::Journal)
}
#[test]
fn timers_of_a_cell_that_was_idle_while_bees_move() {
    retirement(On::Journals)
}

/// Two timers whose messages go to a stateless handler. If `merge` is set, the bee that sets the timers
/// merges between them.
fn via_stateless(merge: bool, on: On) {
    for (first, joined) in [(7, 8), (8, 7)] {
        on_workers(4, async {
            let (hive, _journal) = start(Hive::builder().app::<Ledger>(), on);
            for key in [1, 2, 7, 8] {
                hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
            }

            hive.idle().await;
            hive.emit(RingVia { at: first, via: (600, vec![2], 2), milliseconds: 300 }).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            if merge {
                hive.emit(Listed { keys: vec![first, joined], number: 1, milliseconds: 0 }).await;
                eventually("the merge", LIMIT, || hive.status().apps[0].bees_merged == 1).await;
            }

            hive.emit(RingVia { at: first, via: (0, vec![2], 3), milliseconds: 400 }).await;
            tokio::time::sleep(Duration::from_millis(600)).await;
            hive.idle().await;
            lists(&hive, [(1, vec![0]), (2, vec![0, 2, 3])]).await;
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}
#[test]
fn timers_through_a_stateless_handler() {
    via_stateless(false, On::Memory)
}
#[test]
fn timers_through_a_stateless_handler_merge() {
    via_stateless(true, On::Memory)
}
#[test]
fn timers_through_a_stateless_handler_journal() {
    via_stateless(false, On::Journal)
}
#[test]
fn timers_through_a_stateless_handler_while_bees_move() {
    via_stateless(false, On::Journals)
}

/// Two timers of one bee that fire one after the other go through a stateless handler, and the first message
/// has to wait for a merge.
fn via_stateless_waits(on: On) {
    on_workers(3, async {
        let (hive, _journal) = start(Hive::builder().app::<Ledger>(), on);
        for key in [1, 2, 7] {
            hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
        }

        hive.idle().await;
        hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 800 }).await;
        hive.emit(RingVia { at: 7, via: (0, vec![1, 2], 2), milliseconds: 100 }).await;
        hive.emit(RingVia { at: 7, via: (0, vec![2], 3), milliseconds: 300 }).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        hive.idle().await;
        lists(&hive, [(1, vec![0, 1, 2]), (2, vec![0, 2, 3])]).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}
#[test]
fn timers_through_a_stateless_handler_that_wait_memory() {
    via_stateless_waits(On::Memory)
}
#[test]
fn timers_through_a_stateless_handler_that_wait_journal() {
    via_stateless_waits(On::Journal)
}
#[test]
fn timers_through_a_stateless_handler_that_wait_while_bees_move() {
    via_stateless_waits(On::Journals)
}

/// An empty bee retires some time after its timers have fired.
#[test]
fn a_bee_that_has_set_timers_retires_when_they_have_rung() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Ledger>(), On::Memory);
        hive.emit(Listed { keys: vec![1], number: 0, milliseconds: 0 }).await;
        hive.emit(Ring { at: 7, keys: vec![1], number: 1, milliseconds: 500 }).await;
        tokio::time::sleep(Duration::from_millis(350)).await;
        assert_eq!(hive.status().apps[0].bees, 2);
        eventually("retired", LIMIT, || hive.status().apps[0].bees == 1).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}
