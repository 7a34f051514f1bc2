//! Limits the number of connections that have not completed the handshake. Further connections wait until one of these
//! completes it. If connections wait, the one that has been silent for longest is evicted, once it has been silent for
//! [`limits::HALF_OPEN_SILENT_MIN`].
//!
//! A connection is silent if its next step is the peer's: the controller has handled all that the peer has sent, and has
//! written its own message. A real switch answers in milliseconds, so a peer that opens many silent connections mostly
//! evicts its own. A connection that waits for the controller is never evicted, however many there are.

use crate::limits;
use beehive::Time;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// The connections that have not completed the handshake.
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    slots: Mutex<Slots>,
    /// Notified when a slot becomes free.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Slots {
    next: u64,
    taken: BTreeMap<u64, Arc<State>>,
}

/// Whose step is next, as the evicting task sees it. The atomics guard no other data, so relaxed ordering suffices: at
/// worst, a connection is asked to end that has just spoken, and it refuses.
#[derive(Debug, Default)]
struct State {
    /// Time since which the peer has been silent, in nanoseconds; zero if the next step is the controller's.
    silent_since_ns: AtomicU64,
    is_evicted: AtomicBool,
    evicted: Notify,
}

/// The slot of one connection. Dropping this value frees the slot.
#[derive(Debug)]
pub(in crate::driver::openflow) struct Slot {
    half_open: Arc<HalfOpen>,
    number: u64,
    state: Arc<State>,
}

impl HalfOpen {
    /// Takes a slot. The next step is the controller's.
    pub(super) fn add(self: &Arc<Self>) -> Slot {
        let mut slots = self.slots.lock();
        slots.next += 1;
        let (number, state) = (slots.next, Arc::<State>::default());
        slots.taken.insert(number, state.clone());
        Slot { half_open: self.clone(), number, state }
    }

    /// Returns the number of slots that are taken.
    pub(super) fn len(&self) -> usize {
        self.slots.lock().taken.len()
    }

    /// Evicts the connections that have been silent for longest and for at least `silent_min`, so that, including those
    /// that are being evicted already, `wanted` slots become free. Returns whether so many can be found.
    pub(super) fn evict(&self, wanted: usize, now: Time, silent_min: Duration) -> bool {
        let slots = self.slots.lock();
        let is_evicted = |state: &State| state.is_evicted.load(Ordering::Relaxed);
        let under_way = slots.taken.values().filter(|state| is_evicted(state)).count();
        let mut wanted = wanted.saturating_sub(under_way);
        if wanted == 0 {
            return true;
        }

        let mut silent: Vec<(u64, &Arc<State>)> = (slots.taken.values())
            .filter(|state| !is_evicted(state))
            .map(|state| (state.silent_since_ns.load(Ordering::Relaxed), state))
            .filter(|(since, _)| *since > 0 && now.since(Time::from_nanoseconds(*since)) >= silent_min)
            .collect();
        silent.sort_unstable_by_key(|(since, _)| *since);
        for (_, state) in silent {
            state.is_evicted.store(true, Ordering::Relaxed);
            state.evicted.notify_one();
            wanted -= 1;
            if wanted == 0 {
                return true;
            }
        }

        false
    }

    /// Waits until a slot becomes free. Cancel-safe.
    pub(super) async fn freed(&self) {
        self.freed.notified().await
    }
}

impl Slot {
    /// Records that the next step is the controller's.
    pub(in crate::driver::openflow) fn is_ours(&self) {
        self.state.silent_since_ns.store(0, Ordering::Relaxed)
    }

    /// Records that the next step is the peer's. Keeps the time since which that has been so.
    pub(in crate::driver::openflow) fn is_theirs(&self, now: Time) {
        let since = &self.state.silent_since_ns;
        if since.load(Ordering::Relaxed) == 0 {
            since.store(now.as_nanoseconds().max(1), Ordering::Relaxed)
        }
    }

    /// Completes when this connection shall end, because it is silent and others wait. Cancel-safe.
    pub(in crate::driver::openflow) async fn evicted(&self) {
        self.state.evicted.notified().await
    }

    /// Refuses to end, because the peer has spoken meanwhile.
    pub(in crate::driver::openflow) fn stay(&self) {
        self.is_ours();
        self.state.is_evicted.store(false, Ordering::Relaxed)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.half_open.slots.lock().taken.remove(&self.number);
        self.half_open.freed.notify_one()
    }
}

/// Returns the number of connections that may do their share of a TLS handshake at once: so few that the other threads
/// serve the connected switches.
pub(super) fn handshakes_at_once() -> usize {
    (std::thread::available_parallelism().map_or(1, usize::from) / limits::THREADS_PER_TLS_HANDSHAKE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanoseconds(1) + Duration::from_millis(ms)
    }

    fn is_asked_to_end(slot: &Slot) -> bool {
        slot.state.is_evicted.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn the_one_that_is_silent_for_longest_gives_way_and_not_the_oldest() {
        let half_open = Arc::new(HalfOpen::default());
        let [oldest, long_silent, silent] = [0; 3].map(|_| half_open.add());
        // the oldest has spoken, and waits for the controller
        oldest.is_theirs(at(0));
        oldest.is_ours();
        long_silent.is_theirs(at(1));
        silent.is_theirs(at(2));
        silent.is_theirs(at(3));

        assert!(
            !half_open.evict(1, at(500), Duration::from_millis(500)),
            "nobody has been silent for so long"
        );
        assert!(half_open.evict(1, at(501), Duration::from_millis(500)));
        long_silent.evicted().await;
        assert!(!is_asked_to_end(&oldest) && !is_asked_to_end(&silent));

        assert!(half_open.evict(1, at(900), Duration::ZERO), "one is under way");
        assert!(!is_asked_to_end(&silent));
        drop(long_silent);
        half_open.freed().await;
        assert_eq!(half_open.len(), 2);

        assert!(!half_open.evict(2, at(900), Duration::ZERO), "the oldest waits for the controller");
        silent.evicted().await;
        silent.stay();
        assert!(!is_asked_to_end(&oldest) && !is_asked_to_end(&silent));
    }
}
