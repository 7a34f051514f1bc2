//! Views of a hive under full load. While the hive is busy, the views show past states in order. When the
//! hive is idle, they equal the state of the owners.

use crate::load::{Chance, eventually, on_workers, unheard};
use beehive_core::testing::TestJournal;
use beehive_core::{
    App, Ctx, Dict, Error, Hive, Key, Message, RequestError, SharedDict, SharedTable, Table, handlers,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum End {
    Well,
    Error,
    Panic,
}

/// Counts at each spot. Several spots are joined.
#[derive(Message)]
#[message(reply = ())]
struct Count {
    spots: Vec<Spot>,
    end: End,
}
/// Removes the content of a spot, so its bee retires.
#[derive(Message)]
#[message(reply = ())]
struct Clear(Spot);
/// Counts at every existing spot.
#[derive(Message)]
struct Everywhere;
/// Answers with the content of a spot.
#[derive(Message)]
#[message(reply = (Option<u64>, Vec<(u64, u64)>))]
struct At(Spot);
/// Reads views, in a handler that has a bee and in a stateless handler.
#[derive(Message)]
#[message(reply = u64)]
struct Look(u64);
#[derive(Message)]
#[message(reply = u64)]
struct LookOnly;

#[derive(App)]
#[app(name = "spots")]
struct Spots {
    counts: Dict<Spot, u64>,
    /// The last few counts of a spot. The last row always equals its count.
    history: Table<Spot, u64, u64>,
    /// The last version that a reader has seen.
    seen: Dict<u64, u64>,
}

const KEPT: usize = 4;

#[handlers]
impl Spots {
    #[rcv(joins)]
    fn count(&mut self, msg: &Count) -> Result<(), Error> {
        for spot in &msg.spots {
            self.one_more(*spot);
        }
        match msg.end {
            End::Well => Ok(()),
            End::Error => Err("as asked".into()),
            End::Panic => unheard("as asked"),
        }
    }
    #[rcv(sharded)]
    fn clear(&mut self, msg: &Clear) {
        self.counts.remove(&msg.0);
        self.history.at(msg.0).clear();
    }
    #[rcv(each = counts)]
    fn everywhere(&mut self, spot: &Spot, _: &Everywhere) {
        self.one_more(*spot);
    }
    #[rcv(sharded)]
    fn at(&mut self, msg: &At) -> (Option<u64>, Vec<(u64, u64)>) {
        let rows = self.history.at(msg.0).iter().map(|(row, value)| (*row, *value)).collect();
        (self.counts.get(&msg.0).copied(), rows)
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &Look, _: &mut Ctx) -> u64 {
        let version = self.consistent();
        let seen = self.seen.entry(msg.0).or_default();
        assert!(version >= *seen, "version {version} after {seen}");
        *seen = version;
        version
    }
    #[rcv(stateless)]
    fn look_only(&mut self, _: &LookOnly) -> u64 {
        self.consistent()
    }

    fn one_more(&mut self, spot: Spot) {
        let count = self.counts.update(spot, |count| {
            *count += 1;
            *count
        });

        let rows = self.history.at(spot);
        rows.insert(count, count);
        if let Some(old) = count.checked_sub(KEPT as u64) {
            rows.remove(&old);
        }
    }

    /// Checks that the views of both dictionaries have the same version, and that each is in a state left by
    /// a transaction.
    fn consistent(&mut self) -> u64 {
        check(&self.counts.shared(), &self.history.shared())
    }
}

/// Checks the invariant that transactions keep. Returns the version.
fn check(counts: &SharedDict<Spot, u64>, history: &SharedTable<Spot, u64, u64>) -> u64 {
    assert_eq!(counts.version(), history.version());
    assert_eq!(counts.len(), history.len());

    let mut last = None;
    for (spot, count) in counts.iter() {
        assert!(last < Some(*spot), "in key order");
        last = Some(*spot);
        assert_eq!(history.at(*spot).last(), Some((count, count)), "at {spot:?}");
        assert!(history.at(*spot).len() <= KEPT);
        assert_eq!(counts.get(spot), Some(count));
    }

    counts.version()
}

const SPOTS: u64 = 48;

type Content = BTreeMap<u64, (Option<u64>, Vec<(u64, u64)>)>;

/// Returns the content of the views.
fn copied(hive: &Hive) -> Content {
    hive.read(|spots: &Spots| {
        let (counts, history) = (spots.counts.shared(), spots.history.shared());
        check(&counts, &history);
        let rows = |spot| history.at(spot).iter().map(|(row, value)| (*row, *value)).collect();
        (0..SPOTS).map(|spot| (spot, (counts.get(&Spot(spot)).copied(), rows(Spot(spot))))).collect()
    })
    .unwrap()
}

/// Returns the content that the owners of the cells have.
async fn owned(hive: &Hive) -> Content {
    let mut content = Content::new();
    for spot in 0..SPOTS {
        content.insert(spot, hive.request_within(Duration::from_secs(30), At(Spot(spot))).await.unwrap());
    }
    content
}

async fn storm(hive: &Hive, seed: u64, rounds: u64) {
    let over = Arc::new(AtomicBool::new(false));
    let looks = Arc::new(AtomicU64::new(0));
    let outside: Vec<_> = (0..2)
        .map(|_| {
            let (hive, over, looks) = (hive.clone(), over.clone(), looks.clone());
            std::thread::spawn(move || {
                let mut last = 0;
                while !over.load(Ordering::Acquire) {
                    let version = hive
                        .read(|spots: &Spots| check(&spots.counts.shared(), &spots.history.shared()))
                        .unwrap();
                    assert!(version >= last, "version {version} after {last}");
                    last = version;
                    looks.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_micros(50))
                }
            })
        })
        .collect();

    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let hive = hive.clone();
            tokio::spawn(async move {
                // Each incarnation has different readers, because version numbers start again.
                let (mut chance, looker) = (Chance(seed * 7 + task), seed * 7 + task);
                for _ in 0..rounds {
                    let spot = Spot(chance.below(SPOTS));
                    match chance.below(20) {
                        0..3 => hive.request_within(Duration::from_secs(30), Clear(spot)).await.unwrap(),
                        3 => hive.emit(Everywhere).await,
                        4..7 => {
                            let _ = hive.request_within(Duration::from_secs(30), Look(looker)).await.unwrap();
                        }
                        7 => {
                            let _ = hive.request_within(Duration::from_secs(30), LookOnly).await.unwrap();
                        }
                        8..10 => {
                            let spots = vec![spot, Spot((spot.0 + 1 + chance.below(3)) % SPOTS)];
                            let count = Count { spots, end: End::Well };
                            hive.request_within(Duration::from_secs(30), count).await.unwrap()
                        }
                        kind => {
                            let end = match kind {
                                10 => End::Error,
                                11 => End::Panic,
                                _ => End::Well,
                            };

                            let count = Count { spots: vec![spot], end };
                            let answer = hive.request_within(Duration::from_secs(30), count).await;
                            match end {
                                End::Well => assert_eq!(answer, Ok(())),
                                End::Panic => assert_eq!(answer, Err(RequestError::Panicked)),
                                _ => assert!(matches!(answer, Err(RequestError::Handler(_))), "{answer:?}"),
                            }
                        }
                    }
                }
            })
        })
        .collect();

    for task in tasks {
        task.await.unwrap()
    }

    over.store(true, Ordering::Release);
    outside.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(looks.load(Ordering::Relaxed) > 0);
    hive.idle().await;
}

#[test]
fn views_of_an_idle_hive_equal_the_cells_of_the_owners() {
    on_workers(4, async {
        let hive = Hive::builder().app::<Spots>().start().unwrap();
        for seed in 0..6 {
            storm(&hive, seed, 150).await;
            let copied = copied(&hive);
            assert_eq!(copied, owned(&hive).await);
            // Bees are exported and imported, and retire. That changes no content.
            hive.reimport().await.unwrap();
            assert_eq!(copied, self::copied(&hive));
        }

        // the hive looks for empty bees only at intervals, and may not have found any yet
        let copied = copied(&hive);
        let alone = Spot(SPOTS);
        hive.request(Count { spots: vec![alone], end: End::Well }).await.unwrap();
        hive.request(Clear(alone)).await.unwrap();
        let begun = Instant::now();
        while hive.status().apps[0].bees_retired == 0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "no bee has retired");
            tokio::time::sleep(Duration::from_millis(20)).await
        }
        assert_eq!(copied, self::copied(&hive));
        assert_eq!(copied, owned(&hive).await);

        let app = &hive.status().apps[0];
        assert!(app.bees_merged > 0, "no bees have merged");

        let views = app.views.as_ref().unwrap();
        assert!(views.version > 100 && views.stale == 0, "{views:?}");
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A hive on a journal that commits late and refuses entries is killed after each incarnation. Refused
/// changes are never visible, and each incarnation starts with the content of the log.
#[test]
fn on_a_journal_views_match_the_log_across_incarnations() {
    let mut log: Vec<Vec<u8>> = Vec::new();
    let mut before: Option<Content> = None;
    for life in 0..4u64 {
        (log, before) = on_workers(4, async {
            let colony = crate::load::killed(&log);
            let journal = TestJournal::start(0x5eed + life, 20, colony.last);
            let builder = Hive::builder().app::<Spots>().seed(42);
            let hive = builder.journal(journal.clone(), colony).start().unwrap();

            // This is before any handler has run.
            if let Some(before) = &before {
                assert_eq!(&copied(&hive), before, "life {life}")
            }

            storm(&hive, 100 + life, 40).await;
            let copied = copied(&hive);
            assert_eq!(copied, owned(&hive).await, "life {life}");
            assert!(journal.refused() > 0);

            journal.stop();
            let mut all = log.clone();
            all.extend(journal.log());
            hive.stop(Duration::ZERO).await;
            (all, Some(copied))
        });
    }
}

/// A handler that holds a version for a long time does not prevent other handlers from seeing later versions.
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Hold(u64);
#[derive(Message)]
#[message(reply = ())]
struct Add(u64);
#[derive(App)]
struct Holders {
    sums: Dict<u64, u64>,
    holders: Dict<u64, u64>,
}
#[handlers]
impl Holders {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) {
        self.sums.update(msg.0, |sum| *sum += 1);
    }
    /// Answers with the content of the view when the handler took it, and when the handler is released.
    #[rcv(sharded)]
    fn hold(&mut self, msg: &Hold) -> (u64, u64) {
        let sums = self.sums.shared();
        let before = sums.values().sum();
        for _ in 0..30_000 {
            if !HOLDS.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1))
        }

        self.holders.put(msg.0, 1);
        (before, self.sums.shared().values().sum())
    }
}

static HOLDS: AtomicBool = AtomicBool::new(true);

#[test]
fn a_handler_that_holds_a_version_holds_nobody_up() {
    on_workers(4, async {
        let hive = Hive::builder().app::<Holders>().start().unwrap();
        hive.request(Add(1)).await.unwrap();
        let holding = {
            let hive = hive.clone();
            tokio::spawn(async move { hive.request(Hold(1)).await.unwrap() })
        };

        let sum = || hive.read(|holders: &Holders| holders.sums.shared().values().sum::<u64>()).unwrap();
        let (mut written, begun) = (1, std::time::Instant::now());
        // The handler holds one of the two copies. If readers see more than two later versions, the publisher
        // has made another copy.
        while sum() < 100 {
            assert!(begun.elapsed() < Duration::from_secs(25), "{} of {written} are seen", sum());
            hive.request(Add(written % 7)).await.unwrap();
            written += 1
        }

        HOLDS.store(false, Ordering::Release);
        let (before, after) = holding.await.unwrap();
        assert_eq!(before, after, "one version for a transaction");
        eventually("all are seen", Duration::from_secs(25), || sum() == written).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}
