//! Values and messages whose drop panics: committed changes stay, failed transactions leave nothing, and the
//! bees and the hive continue.

use crate::load::{EVERYWHERE, credits_are_back, on_workers, start, unheard};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Error, Hive, Mapper, Message, Table, handlers};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A value whose clones panic when they are dropped. If `armed` is set, the original panics as well.
#[derive(Serialize, Deserialize)]
struct Touchy {
    value: u64,
    armed: bool,
}

impl Clone for Touchy {
    fn clone(&self) -> Self {
        Touchy { value: self.value, armed: true }
    }
}

impl Drop for Touchy {
    fn drop(&mut self) {
        if self.armed && !std::thread::panicking() {
            unheard("dropped")
        }
    }
}

/// Sets both halves of a pair, and then fails if `fails` is set.
#[derive(Message)]
struct Set {
    key: u64,
    value: u64,
    /// Whether the value panics when it is dropped.
    armed: bool,
    fails: bool,
}
#[derive(Message)]
#[message(reply = (u64, u64, u64))]
struct Look(u64);

#[derive(App)]
struct Pairs {
    first: Dict<u64, Touchy>,
    second: Dict<u64, u64>,
    third: Table<u64, u64, u64>,
}
#[handlers]
impl Pairs {
    #[rcv(joins)]
    fn set(&mut self, msg: &Set) -> Result<(), Error> {
        match self.first.get_mut(&msg.key) {
            Some(first) => (first.value, first.armed) = (msg.value, msg.armed),
            None => drop(self.first.put(msg.key, Touchy { value: msg.value, armed: msg.armed })),
        }
        self.second.put(msg.key, msg.value);
        self.third.at(msg.key).insert(0, msg.value);
        if msg.fails { Err("as asked".into()) } else { Ok(()) }
    }
    #[rcv(joins)]
    fn look(&mut self, msg: &Look) -> (u64, u64, u64) {
        let first = self.first.get(&msg.0).map_or(0, |first| first.value);
        let second = self.second.get(&msg.0).copied().unwrap_or_default();
        (first, second, self.third.at(msg.0).get(&0).copied().unwrap_or_default())
    }
}

#[test]
fn a_panic_in_drop_does_not_break_atomicity() {
    on_workers(2, async {
        let hive = Hive::builder().app::<Pairs>().start().unwrap();
        let set = |value, fails| Set { key: 1, value, armed: false, fails };
        assert_eq!(hive.request(set(1, false)).await, Ok(()));

        // The commit drops the undo entry, which panics.
        assert_eq!(hive.request(set(2, false)).await, Ok(()));
        assert_eq!(hive.request(Look(1)).await, Ok((2, 2, 2)));
        assert!(hive.request(set(3, true)).await.is_err());
        assert_eq!(
            hive.request(Look(1)).await,
            Ok((2, 2, 2)),
            "what failed has left something, or taken it away"
        );

        // The rollback drops the new value, which panics.
        assert!(hive.request(Set { key: 1, value: 4, armed: true, fails: true }).await.is_err());
        assert_eq!(hive.request(Look(1)).await, Ok((2, 2, 2)));

        // The current value is a clone, which would panic when the hive is dropped. Replace it with a value
        // that is not a clone.
        assert_eq!(hive.request(set(5, false)).await, Ok(()));
        assert_eq!(hive.request(Look(1)).await, Ok((5, 5, 5)));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Panics when dropped.
#[derive(Serialize, Deserialize)]
struct Loud(u64);

impl Drop for Loud {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            unheard("dropped")
        }
    }
}
#[derive(Message)]
struct Shout(Loud);
#[derive(Message)]
#[message(reply = u64)]
struct Heard(u64);

#[derive(App)]
struct Echo {
    heard: Dict<u64, u64>,
}
#[handlers]
impl Echo {
    #[rcv(sharded)]
    fn shout(&mut self, msg: &Shout) {
        *self.heard.entry(msg.0.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn heard(&mut self, msg: &Heard) -> u64 {
        self.heard.get(&msg.0).copied().unwrap_or_default()
    }
}

#[test]
fn a_message_that_panics_when_it_is_dropped_takes_neither_its_bee_along_nor_its_thread() {
    for journaled in [false, true] {
        on_workers(2, async {
            let journal = journaled.then(|| TestJournal::start(3, 0, 0));
            let builder = Hive::builder().app::<Echo>();
            let builder = match &journal {
                Some(journal) => builder.journal(journal.clone(), LogState::default()),
                None => builder,
            };

            let hive = builder.start().unwrap();
            for _ in 0..3 {
                for key in 0..10 {
                    hive.emit(Shout(Loud(key))).await
                }
            }

            for key in 0..10 {
                assert_eq!(hive.request(Heard(key)).await, Ok(3), "key {key}, with a journal: {journaled}")
            }

            if let Some(journal) = journal {
                journal.stop()
            }

            hive.stop(Duration::ZERO).await;
        })
    }
}

#[derive(Message)]
struct Unhandled(Loud);

/// The last holder of a message drops it. If no app handles the message, the last holder is the task that
/// emits it.
#[test]
fn a_message_that_panics_when_it_is_dropped_does_not_harm_the_task_that_emits_it() {
    on_workers(2, async {
        let hive = Hive::builder().app::<Echo>().start().unwrap();
        hive.emit(Unhandled(Loud(1))).await;

        assert_eq!(hive.request(Heard(1)).await, Ok(0));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Sends this many messages to one bee at once.
#[derive(Message)]
struct Repeat(u64, Fault);
/// A message whose answer is discarded, and panics when dropped.
#[derive(Message)]
#[message(reply = Loud)]
struct Unasked(Fault);
#[derive(Message)]
struct Counted(u64);
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Fault {
    None,
    /// Touches a cell that its map does not name, catches the unwind, and continues.
    Strays,
    PutsOff,
    /// Emits a message, and then fails.
    Fails,
}

#[derive(App)]
struct Unread {
    count: Dict<u64, u64>,
    heard: Dict<u64, u64>,
}
fn only_the_count(_: &Unasked, mapper: &mut Mapper) {
    mapper.cell(Unread::__bh_count, &0)
}
#[handlers]
impl Unread {
    #[rcv(stateless)]
    fn repeat(&mut self, msg: &Repeat, ctx: &mut Ctx) {
        (0..msg.0).for_each(|_| ctx.emit(Unasked(msg.1)))
    }
    #[rcv(map = only_the_count)]
    fn unasked(&mut self, msg: &Unasked, ctx: &mut Ctx) -> Result<Loud, Error> {
        let count = self.count.update(0, |count| {
            *count += 1;
            *count
        });

        match msg.0 {
            Fault::Strays => {
                let strays = std::panic::AssertUnwindSafe(|| self.heard.contains(&count));
                let _ = std::panic::catch_unwind(strays);
            }
            Fault::PutsOff if count % 2 == 1 => ctx.postpone(Duration::from_millis(1)),
            Fault::Fails if count.is_multiple_of(2) => {
                (0..3).for_each(|_| ctx.emit(Shout(Loud(99))));
                Err("as asked")?
            }
            _ => {}
        }

        ctx.emit(Counted(count));
        Ok(Loud(0))
    }
    #[rcv(sharded)]
    fn counted(&mut self, msg: &Counted) {
        *self.heard.entry(msg.0).or_default() += 1
    }
    #[rcv(joins)]
    fn heard(&mut self, msg: &Heard) -> u64 {
        let count = self.count.get(&msg.0).copied();
        count.or(self.heard.get(&msg.0).copied()).unwrap_or(0)
    }
}

#[test]
fn an_answer_that_panics_when_it_is_dropped_harms_nobody() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Unread>(), on);
            // Each fault, with the count that is expected afterwards.
            for (fault, count) in
                [(Fault::None, 10), (Fault::Strays, 10), (Fault::PutsOff, 30), (Fault::Fails, 31)]
            {
                hive.emit(Repeat(10, fault)).await;
                let end = Instant::now() + Duration::from_secs(5);
                while hive.request(Heard(0)).await != Ok(count) && Instant::now() < end {
                    tokio::time::sleep(Duration::from_millis(2)).await
                }

                credits_are_back(&hive, &[], 0).await;
                assert_eq!(hive.request(Heard(0)).await, Ok(count), "{on:?}");

                for at in 1..=count {
                    assert_eq!(hive.request(Heard(at)).await, Ok(1), "{on:?}: {at} of {count}");
                }
            }

            hive.stop(Duration::ZERO).await;
        })
    }
}
