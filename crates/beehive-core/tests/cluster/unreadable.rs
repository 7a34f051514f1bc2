//! A hive that cannot decode the copy of a bee does not take the bee: the bee stays where it is. One that cannot decode a bee
//! that it has taken over sets this bee aside.

use crate::directed::QUIET;
use beehive_core::seams::Platform;
use beehive_core::testing::Cluster;
use beehive_core::{App, Dict, Message, handlers};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The outcome of the next attempts to decode a [`Picky`]. After that many, it can be decoded.
#[derive(Clone, Copy)]
enum Decoding {
    Fails(u32),
    Panics(u32),
}

thread_local! {
    static DECODING: Cell<Decoding> = const { Cell::new(Decoding::Fails(0)) };
}

/// A number that sometimes cannot be decoded.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
struct Picky(u64);

impl TryFrom<u64> for Picky {
    type Error = &'static str;
    fn try_from(number: u64) -> Result<Picky, &'static str> {
        match DECODING.get() {
            Decoding::Fails(0) | Decoding::Panics(0) => Ok(Picky(number)),
            Decoding::Fails(times) => {
                DECODING.set(Decoding::Fails(times - 1));
                Err("an older program wrote it")
            }
            Decoding::Panics(times) => {
                DECODING.set(Decoding::Panics(times - 1));
                panic!("an older program wrote it")
            }
        }
    }
}

impl From<Picky> for u64 {
    fn from(Picky(number): Picky) -> u64 {
        number
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Add(u64);

#[derive(App)]
#[app(name = "sums")]
struct Sums {
    sums: Dict<u64, Picky>,
}

#[handlers]
impl Sums {
    #[rcv]
    fn add(&mut self, msg: &Add) -> u64 {
        let Picky(sum) = self.sums.entry(msg.0).or_default();
        *sum += 1;
        *sum
    }
}

fn stays_and_moves_later(decoding: Decoding) {
    let mut cluster = Cluster::of::<Sums>().network(QUIET).start(1);
    let add = |cluster: &mut Cluster, hive: usize| {
        let hive = cluster.hive(hive).clone();
        cluster.drive(hive.request(Add(7)))
    };
    assert_eq!(add(&mut cluster, 0), Ok(1));
    let (bee, at) = cluster.bees("sums")[0];
    assert_eq!(at, 0);

    DECODING.set(decoding);
    assert!(cluster.aim(bee, 1));
    // the source need not wait until the move has taken too long
    cluster.advance(Duration::from_secs(1));
    let entry = cluster.registry(|view| view.bee(bee));
    assert!(entry.is_some_and(|entry| entry.aim.is_none() && entry.epoch.0 == 1), "{entry:?}");
    assert_eq!(cluster.bees("sums"), [(bee, 0)]);
    assert_eq!(add(&mut cluster, 2), Ok(2), "the bee goes on where it was");

    // by then, the hive that refused the bee runs the right program
    assert_eq!(cluster.move_bee(bee, 2), Ok(()));
    assert_eq!((add(&mut cluster, 1), cluster.bees("sums")), (Ok(3), vec![(bee, 2)]));
}

#[test]
fn a_bee_stays_if_its_copy_cannot_be_decoded() {
    stays_and_moves_later(Decoding::Fails(1))
}

#[test]
fn a_bee_stays_if_decoding_its_copy_panics() {
    stays_and_moves_later(Decoding::Panics(1))
}

/// The source cannot decode the bee either, when it goes on with it.
#[test]
fn a_bee_goes_on_if_its_rows_cannot_be_shown_when_it_stays() {
    stays_and_moves_later(Decoding::Fails(2));
    stays_and_moves_later(Decoding::Panics(2))
}

/// A hive takes over two bees, and the one that runs first cannot be decoded.
fn others_go_on(decoding: Decoding) {
    let mut cluster = Cluster::of::<Sums>().network(QUIET).start(2);
    let add = |cluster: &mut Cluster, hive, sum| {
        let hive = cluster.hive(hive).clone();
        cluster.drive(hive.request(Add(sum)))
    };
    assert_eq!((add(&mut cluster, 0, 7), add(&mut cluster, 0, 8)), (Ok(1), Ok(1)));
    cluster.advance(Duration::from_millis(50));
    cluster.crash(0);
    cluster.take_over(0, 1);
    DECODING.set(decoding);
    let (hive, answered) = (cluster.hive(1).clone(), Arc::<AtomicBool>::default());
    let waiting = answered.clone();
    cluster.platform().spawn(Box::pin(async move {
        let _ = hive.request(Add(7)).await;
        waiting.store(true, Ordering::Release)
    }));
    cluster.advance(Duration::from_millis(100));
    assert_eq!((add(&mut cluster, 2, 8), add(&mut cluster, 1, 8)), (Ok(2), Ok(3)), "another bee");
    // it cannot move, and the other one can
    let bees = cluster.bees("sums");
    assert!(bees.iter().all(|(bee, _)| cluster.aim(*bee, 2)));
    cluster.advance(Duration::from_secs(2));
    assert_eq!(cluster.bees("sums").iter().filter(|(_, hive)| *hive == 2).count(), 1);
    assert_eq!(add(&mut cluster, 1, 8), Ok(4));
    assert!(!answered.load(Ordering::Acquire), "the message waits");

    // the next process can decode it; the request ended with its hive
    cluster.crash(1);
    cluster.take_over(1, 2);
    cluster.advance(Duration::from_secs(1));
    assert_eq!((add(&mut cluster, 2, 7), add(&mut cluster, 2, 8)), (Ok(2), Ok(5)))
}

#[test]
fn a_bee_that_cannot_be_decoded_after_a_take_over_does_not_hold_up_others() {
    for decoding in [Decoding::Fails(1), Decoding::Panics(1)] {
        others_go_on(decoding)
    }
}
