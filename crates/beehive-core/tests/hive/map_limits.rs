//! A message whose map exceeds a limit soon ends with an error, and does not delay other messages.

use crate::load::{EVERYWHERE, On, on_workers, start};
use beehive_core::{App, Dict, ErrorKind, Hive, Message, RequestError, handlers, limits};
use std::time::{Duration, Instant};

/// Adds one to each of these keys.
#[derive(Message)]
#[message(reply = u64)]
struct Add(Vec<u64>);
/// Adds one to each key of a range, which may be unbounded.
#[derive(Message)]
#[message(reply = u64)]
struct AddFrom {
    first: u64,
    below: Option<u64>,
}
/// Searches for a key that may not exist.
#[derive(Message)]
#[message(reply = u64)]
struct Find {
    divisor: u64,
}
/// Adds one to the predecessor of each of these keys if cell `0` says so.
#[derive(Message)]
#[message(reply = u64)]
struct AddBefore(Vec<u64>);
#[derive(Message)]
#[message(reply = u64)]
struct Get(u64);

#[derive(App)]
struct Counts {
    counts: Dict<u64, u64>,
}
#[handlers]
impl Counts {
    #[rcv(joins)]
    fn add(&mut self, msg: &Add) -> u64 {
        for key in &msg.0 {
            *self.counts.entry(*key).or_default() += 1;
        }
        msg.0.len() as u64
    }

    #[rcv(joins)]
    fn add_from(&mut self, msg: &AddFrom) -> u64 {
        let mut added = 0;
        for key in msg.first.. {
            if Some(key) == msg.below {
                break;
            }
            *self.counts.entry(key).or_default() += 1;
            added += 1;
        }
        added
    }

    #[rcv(sharded)]
    fn find(&mut self, msg: &Find) -> u64 {
        let mut key = 1;
        while key % 4_294_967_291 != msg.divisor {
            key += 1;
        }
        *self.counts.entry(key).or_default() += 1;
        key
    }

    #[rcv(centralized)]
    fn add_before(&mut self, msg: &AddBefore) -> u64 {
        let mut added = 0;
        for key in &msg.0 {
            let any = self.counts.contains(&0) && *key > 0;
            if any {
                *self.counts.entry(key - 1).or_default() += 1;
                added += 1;
            }
        }
        added
    }

    #[rcv(sharded)]
    fn get(&mut self, msg: &Get) -> u64 {
        self.counts.get(&msg.0).copied().unwrap_or(0)
    }
}

const MAX: u64 = limits::CELLS_PER_MESSAGE_MAX as u64;

/// Asserts that the request fails with a limit that names `what`.
fn is_limit(answer: Result<u64, RequestError>, what: &str) {
    let Err(RequestError::Limit(error)) = answer else { panic!("{answer:?}") };
    assert!(error.kind() == ErrorKind::Limit && error.text().contains(what), "{error}");
}

#[test]
fn a_message_may_have_as_many_cells_as_the_limit_says() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Counts>(), on);

            let most: Vec<u64> = (0..MAX).chain(0..MAX).collect();
            assert_eq!(hive.request(Add(most)).await, Ok(2 * MAX), "{on:?}");
            is_limit(hive.request(Add((0..=MAX).collect())).await, "4096 cells");
            assert_eq!(hive.request(Get(MAX - 1)).await, Ok(2), "{on:?}");
            assert_eq!(hive.request(Get(MAX)).await, Ok(0), "{on:?}");

            let below = Some(MAX);
            assert_eq!(hive.request(AddFrom { first: 0, below }).await, Ok(MAX), "{on:?}");
            assert_eq!(hive.request(Get(0)).await, Ok(3), "{on:?}");
            is_limit(hive.request(AddFrom { first: 0, below: None }).await, "4096 cells");
            assert_eq!(hive.request(Get(0)).await, Ok(3), "{on:?}");

            // an emitted message has no requester, so its failure is in the dead letters
            hive.emit(Add((0..=MAX).collect())).await;
            assert_eq!(hive.dead_letters().len(), 3, "{on:?}");
        })
    }
}

#[test]
fn a_search_that_takes_too_long_is_ended() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Counts>(), On::Memory);
        assert_eq!(hive.request(Find { divisor: 1_000 }).await, Ok(1_000));
        is_limit(hive.request(Find { divisor: 4_294_967_292 }).await, "1048576 steps");

        // the count starts again for each message
        let below = u64::from(limits::STEPS_PER_MAP_MAX) - 10;
        assert_eq!(hive.request(Find { divisor: below }).await, Ok(below));
        assert_eq!(hive.request(Find { divisor: below }).await, Ok(below));
    })
}

/// In a build that checks for overflow, the map panics for key 0, while the handler does not.
#[test]
#[cfg(debug_assertions)]
fn a_map_goes_on_behind_a_branch_that_panics_but_not_forever() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Counts>(), on);
            let few: Vec<u64> = [0; 100].into_iter().chain([7]).collect();
            assert_eq!(hive.request(AddBefore(few.clone())).await, Ok(0), "{on:?}");

            assert_eq!(hive.request(Add(vec![0])).await, Ok(1));
            assert_eq!(hive.request(AddBefore(few)).await, Ok(1), "{on:?}");
            assert_eq!(hive.request(Get(6)).await, Ok(1), "{on:?}");
            is_limit(hive.request(AddBefore(vec![0; 200])).await, "1048576 steps");
        })
    }
}

/// The limits apply to each message of a batch separately, and the other messages of the batch are handled in
/// order.
#[test]
fn the_neighbors_of_a_message_that_is_refused_are_handled() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Counts>(), On::Memory);
        let mut io = hive.io();
        for n in 0..90 {
            io.emit(Add(if n % 3 == 0 { (0..=MAX).collect() } else { vec![5] }));
        }
        io.flush().await;

        assert_eq!(hive.request(Get(5)).await, Ok(60));
        assert_eq!(hive.dead_letters().len(), 30);
    })
}

#[test]
fn a_message_with_a_million_keys_is_refused_at_once() {
    on_workers(3, async {
        let (hive, _) = start(Hive::builder().app::<Counts>(), On::Memory);
        // measure the shortest of several attempts, because other programs use the machine. Without the
        // limit, an attempt takes 20 s
        let mut shortest = Duration::MAX;
        for _ in 0..10 {
            let keys = (0..1_000_000).collect();
            let began = Instant::now();
            is_limit(hive.request(Add(keys)).await, "4096 cells");
            shortest = shortest.min(began.elapsed());
        }
        assert!(shortest < Duration::from_millis(500), "{shortest:?}");
    })
}
