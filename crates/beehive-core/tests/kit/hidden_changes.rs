//! A value with a lock or an atomic behind a pointer can be changed through a shared reference. The compiler accepts such
//! a type, and the platform cannot undo or log the change. The test kit finds it.

use beehive_core::testing::Kit;
use beehive_core::{App, Dict, ErrorKind, Message, RequestError, Result, Table, handlers};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
struct Hits {
    count: Arc<AtomicU64>,
    limit: u64,
}

impl Hits {
    fn hit(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

/// Where and how a handler changes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum How {
    /// Through the methods of the dictionaries.
    Openly,
    InDict,
    InRow,
    /// The change is recorded, but its undo entry shares the counter with the value.
    Recorded,
}

#[derive(Message)]
#[message(reply = u64)]
struct Hit {
    page: u64,
    how: How,
    fails: bool,
}

#[derive(App)]
struct Pages {
    hits: Dict<u64, Hits>,
    places: Table<u64, u64, Hits>,
}

#[handlers]
impl Pages {
    #[rcv(joins)]
    fn hit(&mut self, msg: &Hit) -> Result<u64> {
        match msg.how {
            How::Openly => {
                let old = self.hits.get(&msg.page).cloned().unwrap_or_default();
                self.hits.put(msg.page, Hits { limit: old.limit + 1, ..old });
                self.places.at(msg.page).insert(1, Hits::default());
            }
            How::InDict => drop(self.hits.get(&msg.page).map(Hits::hit)),
            How::InRow => drop(self.places.at(msg.page).get(&1).map(Hits::hit)),
            How::Recorded => drop(self.hits.get_mut(&msg.page).map(|hits| hits.hit())),
        }
        match msg.fails {
            true => Err("as asked".into()),
            false => Ok(0),
        }
    }
}

#[test]
fn a_change_through_a_shared_reference_fails_the_step() {
    for fails in [false, true] {
        for (how, name) in [(How::InDict, "hits"), (How::InRow, "places"), (How::Recorded, "hits")] {
            let mut kit = Kit::of::<Pages>().start();
            kit.request(Hit { page: 1, how: How::Openly, fails: false }).unwrap();
            let panic =
                catch_unwind(AssertUnwindSafe(|| kit.request(Hit { page: 1, how, fails }))).unwrap_err();
            let text = panic.downcast_ref::<String>().unwrap();
            let parts = [format!("a value of `{name}` through a shared reference"), "(hit at ".into()];
            assert!(parts.iter().all(|part| text.contains(part)), "{how:?}: {text}");
        }
    }
}

#[test]
fn changes_through_the_methods_pass() {
    let mut kit = Kit::of::<Pages>().start();
    for page in 0..200 {
        kit.request(Hit { page: page % 7, how: How::Openly, fails: false }).unwrap();
        let failed = kit.request(Hit { page: page % 7, how: How::Openly, fails: true });
        assert_eq!(
            failed.as_ref().err().and_then(RequestError::kind),
            Some(ErrorKind::Handler),
            "{failed:?}"
        );
    }
}
