//! The calls that one lane serves for another hive.

use crate::limits::wire as limits;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use tokio_util::sync::CancellationToken;

/// The calls that one lane serves.
#[derive(Debug, Default)]
pub(super) struct Served(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    running: BTreeMap<u64, CancellationToken>,
    /// Calls whose callers have given up before the call arrived: the lanes do not wait for each other.
    forgotten: BTreeSet<u64>,
}

impl Served {
    /// Begins to serve a call. Returns what ends it early, or `None` if its caller has given up.
    pub(super) fn begin(&self, id: u64) -> Option<CancellationToken> {
        let mut calls = self.0.lock();
        if calls.forgotten.remove(&id) {
            return None;
        }
        let end = CancellationToken::new();
        calls.running.insert(id, end.clone());
        Some(end)
    }

    pub(super) fn finish(&self, id: u64) {
        self.0.lock().running.remove(&id);
    }

    /// The caller has given up.
    pub(super) fn forget(&self, id: u64) {
        let mut calls = self.0.lock();
        match calls.running.remove(&id) {
            Some(end) => end.cancel(),
            None => {
                calls.forgotten.insert(id);
                if calls.forgotten.len() > limits::FORGOTTEN_MAX {
                    calls.forgotten.pop_first();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_given_up_ends_whenever_it_arrives() {
        let served = Served::default();
        let running = served.begin(1).expect("begins");
        served.forget(1);
        assert!(running.is_cancelled());
        served.forget(2);
        assert!(served.begin(2).is_none());
        assert!(served.begin(2).is_some(), "an id is forgotten once")
    }

    #[test]
    fn only_so_many_calls_are_remembered_as_given_up() {
        let served = Served::default();
        for id in 0..=limits::FORGOTTEN_MAX as u64 {
            served.forget(id)
        }
        assert!(served.begin(0).is_some() && served.begin(1).is_none());
        assert_eq!(served.0.lock().forgotten.len(), limits::FORGOTTEN_MAX - 1)
    }
}
