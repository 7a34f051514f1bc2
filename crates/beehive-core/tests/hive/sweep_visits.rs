//! Special visits of a sweep: visits that the map drops, visits that need cells of other bees, and visits
//! that take too long.

use crate::load::{EVERYWHERE, eventually, on_workers, start};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[derive(Message)]
struct Put(u64);
/// Every odd field yields its harvest.
#[derive(Message)]
struct Harvest(u64);
#[derive(Message)]
#[message(reply = Vec<(u64, u64)>)]
struct Harvested;
#[derive(Message)]
#[message(reply = u64)]
struct Cut(u64);

#[derive(App)]
struct Farm {
    fields: Dict<u64, u64>,
    barn: Dict<u8, Vec<(u64, u64)>>,
}
#[handlers]
impl Farm {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) {
        self.fields.entry(msg.0).or_default();
    }
    #[rcv(each = fields, centralized)]
    fn harvest(&mut self, key: &u64, msg: &Harvest) {
        if *key & 1 == 0 {
            return;
        }
        *self.fields.entry(*key).or_default() += 1;
        self.barn.entry(0).or_default().push((msg.0, *key))
    }
    #[rcv(centralized)]
    fn harvested(&mut self, _: &Harvested) -> Vec<(u64, u64)> {
        self.barn.get(&0).cloned().unwrap_or_default()
    }
    #[rcv(sharded)]
    fn cut(&mut self, msg: &Cut) -> u64 {
        self.fields.get(&msg.0).copied().unwrap_or(0)
    }
}

const FIELDS: u64 = 20;
const LIMIT: Duration = Duration::from_secs(20);

async fn all_is_harvested(hive: &Hive, times: u64, what: &str) {
    let mut barn = hive.request_within(LIMIT, Harvested).await.unwrap();
    barn.sort_unstable();
    let odd = || (0..FIELDS).filter(|key| key % 2 == 1);
    let want: Vec<(u64, u64)> = (0..times).flat_map(|time| odd().map(move |key| (time, key))).collect();

    assert_eq!(barn, want, "{what}");
    for key in 0..FIELDS {
        let want = if key % 2 == 1 { times } else { 0 };
        assert_eq!(hive.request_within(LIMIT, Cut(key)).await, Ok(want), "{what}, field {key}");
    }
}

/// The request is answered when every visit is complete. This includes visits that the map has dropped, and
/// visits that had to wait until their bee owned all cells that they need.
#[test]
fn a_sweep_is_answered_though_turns_are_dropped_or_taken_elsewhere() {
    for on in EVERYWHERE {
        on_workers(3, async {
            let (hive, _journal) = start(Hive::builder().app::<Farm>(), on);
            for key in 0..FIELDS {
                hive.request_within(LIMIT, Put(key)).await.unwrap();
            }

            assert_eq!(hive.status().apps[0].bees, FIELDS as usize);
            for time in 0..3 {
                assert_eq!(hive.request_within(LIMIT, Harvest(time)).await, Ok(()), "{on:?}");
                all_is_harvested(&hive, time + 1, &format!("{on:?}")).await
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

static WATERED: AtomicBool = AtomicBool::new(false);
static WATERING: AtomicU64 = AtomicU64::new(0);

/// Releases the handler when dropped, even if an assertion fails. Otherwise the runtime would wait for the
/// handler's thread forever.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        WATERED.store(true, Ordering::Release)
    }
}

#[derive(Message)]
struct Sow(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Waterings(u64);

#[derive(App)]
struct Garden {
    beds: Dict<u64, u64>,
}
#[handlers]
impl Garden {
    #[rcv(sharded)]
    fn sow(&mut self, msg: &Sow) {
        self.beds.entry(msg.0).or_default();
    }
    #[every("50ms", each = beds)]
    fn water(&mut self, key: &u64, _: &mut Ctx) {
        WATERING.fetch_add(1, Ordering::AcqRel);
        while !WATERED.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
        *self.beds.entry(*key).or_default() += 1
    }
    #[rcv(sharded)]
    fn waterings(&mut self, msg: &Waterings) -> u64 {
        self.beds.get(&msg.0).copied().unwrap_or(0)
    }
}

/// While a visit of a paced sweep is pending, the next sweep is skipped, so nothing piles up behind it.
#[test]
fn sweeps_do_not_pile_up_behind_a_turn_that_takes_long() {
    for on in EVERYWHERE {
        WATERED.store(false, Ordering::Release);
        WATERING.store(0, Ordering::Release);
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Garden>(), on);
            let release = Release;
            hive.request_within(LIMIT, Sow(1)).await.unwrap();
            eventually("a turn", LIMIT, || WATERING.load(Ordering::Acquire) > 0).await;

            let collapsed = hive.status().ticks_collapsed;
            eventually("collapsed", LIMIT, || hive.status().ticks_collapsed >= collapsed + 10).await;
            drop(release);

            // The request is queued behind all pending visits.
            let waterings = hive.request_within(LIMIT, Waterings(1)).await.unwrap();
            assert!((1..=3).contains(&waterings), "{waterings} turns at once, {on:?}");
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}
