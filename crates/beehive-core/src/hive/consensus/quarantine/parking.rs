//! Work that is parked, and holds no thread, because other threads already wait for the crash marker of its log.
//!
//! A quarantined message holds its thread until its log has committed the marker that names it. If a log commits nothing, its
//! messages could hold all threads that the app may have, and bees of the app in other logs would not run. So when
//! [`limits::MARKER_WAITERS_PER_LOG_MAX`] threads wait for the marker of a log, other work of this log that has
//! quarantined messages is parked before it begins: a bee with its mailbox, or a sender's deferred messages.
//!
//! Parked work is resumed piece by piece, oldest first: by a thread that no longer waits, and by a piece that was resumed,
//! when it has run ([`Resumed`]). No piece is forgotten. Work is parked under the lock under which the number of waiting
//! threads changes, so while any work of a log is parked, threads wait that resume a piece when they go on, or a piece is being
//! resumed. That piece resumes the next one also if it finds nothing to run, for example because the bee has merged meanwhile.

use super::Quarantine;
use crate::hive::consensus::journal::MessageId;
use crate::hive::consensus::log_client::LogClient;
use crate::limits;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Resumes parked work on another thread. Returns the token if there is no other thread, because the hive was dropped.
pub(crate) type Resume = Box<dyn FnOnce(Resumed) -> Option<Resumed> + Send>;

/// The messages or visits that a piece of work handles next.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// The messages from the first to the last one, on the same lane.
    Messages(MessageId, MessageId),
    /// Visits of this sweep.
    Visits(MessageId),
}

/// The work of one log.
#[derive(Default)]
struct OfLog {
    /// Number of threads that wait for the log's marker.
    waiting: usize,
    /// The parked work, oldest first, each piece with its key.
    parked: VecDeque<(usize, Resume)>,
    /// The keys of the parked work: a bee runs again when it gets a message, and is then parked already.
    keys: BTreeSet<usize>,
}

impl OfLog {
    fn is_full(&self) -> bool {
        self.waiting >= limits::MARKER_WAITERS_PER_LOG_MAX
    }

    fn take_next(&mut self) -> Option<Resume> {
        let (key, next) = self.parked.pop_front()?;
        self.keys.remove(&key);
        Some(next)
    }
}

/// The threads that wait for markers, and the parked work.
pub(super) struct Parking {
    logs: Vec<OfLog>,
    /// Whether the hive has stopped, so that nobody waits for a marker any more.
    is_over: bool,
}

impl Parking {
    /// There are never more than `room` logs.
    pub(super) fn new(room: usize) -> Parking {
        Parking { logs: (0..room).map(|_| OfLog::default()).collect(), is_over: false }
    }

    fn is_full(&self, log: usize) -> bool {
        !self.is_over && self.logs.get(log).is_some_and(OfLog::is_full)
    }

    /// Changes the number of threads that wait for a log's marker. Returns whether any log has as many of them as it may have.
    fn wait(&mut self, log: usize, change: impl FnOnce(&mut usize)) -> bool {
        if let Some(of_log) = self.logs.get_mut(log) {
            change(&mut of_log.waiting)
        }
        self.logs.iter().any(OfLog::is_full)
    }
}

/// A thread that waits for the marker of a log.
pub(super) struct Waits<'a> {
    quarantine: &'a Arc<Quarantine>,
    log: usize,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.quarantine.count_waiting(self.log, |waiting| *waiting -= 1);
        self.quarantine.resume_next(self.log)
    }
}

/// A piece of work that is resumed. When this value is dropped, it is the turn of the next one.
pub(crate) struct Resumed {
    /// `None` if no other piece is to be resumed.
    quarantine: Option<Arc<Quarantine>>,
    log: usize,
}

impl Drop for Resumed {
    fn drop(&mut self) {
        if let Some(quarantine) = self.quarantine.take() {
            quarantine.resume_next(self.log)
        }
    }
}

impl Quarantine {
    /// Counts the calling thread among those that wait for the marker of a log.
    pub(super) fn waits(self: &Arc<Self>, log: usize) -> Waits<'_> {
        self.count_waiting(log, |waiting| *waiting += 1);
        Waits { quarantine: self, log }
    }

    fn count_waiting(&self, log: usize, change: impl FnOnce(&mut usize)) {
        let mut parking = self.parking.lock();
        let any_full = parking.wait(log, change);
        // under the lock, so that the last change counts
        self.any_full.store(any_full, Ordering::Relaxed)
    }

    /// Checks whether so many threads wait for the marker of `log` that this work should be parked. A thread that comes at the
    /// same time as others may find that it should not, and waits all the same.
    #[inline]
    pub(crate) fn must_park<W: ?Sized>(
        &self,
        log: &LogClient<W>,
        work: impl FnOnce() -> Option<Work>,
    ) -> bool {
        self.any_full.load(Ordering::Relaxed) && self.is_to_park(log, work())
    }

    #[cold]
    fn is_to_park<W: ?Sized>(&self, log: &LogClient<W>, work: Option<Work>) -> bool {
        if !self.parking.lock().is_full(log.position()) || log.is_deposed() || self.are_all_unsuspected() {
            return false;
        }
        match work {
            Some(Work::Messages(first, last)) => self.concerns(first, last),
            Some(Work::Visits(sweep)) => self.suspects.lock().sweeps.contains_key(&sweep),
            None => false,
        }
    }

    /// Parks work until fewer threads wait for the marker of `log`. No other work has the same `key` at the same time. Returns
    /// `false` if the work is to run now. The work must be ready to run on another thread when this is called.
    pub(crate) fn park<W: ?Sized>(
        &self,
        log: &LogClient<W>,
        key: usize,
        resume: impl FnOnce() -> Resume,
    ) -> bool {
        self.park_at(log.position(), || log.is_deposed(), key, resume)
    }

    fn park_at(
        &self,
        log: usize,
        is_deposed: impl FnOnce() -> bool,
        key: usize,
        resume: impl FnOnce() -> Resume,
    ) -> bool {
        let mut parking = self.parking.lock();
        // Under the lock. If the hive loses the log after this look, it resumes all work of the log after that
        if !parking.is_full(log) || is_deposed() {
            return false;
        }
        if let Some(of_log) = parking.logs.get_mut(log)
            && of_log.keys.insert(key)
        {
            of_log.parked.push_back((key, resume()))
        }
        true
    }

    /// Resumes the next piece of a log's work, if fewer threads wait for the log's marker than may.
    fn resume_next(self: &Arc<Self>, log: usize) {
        let next = {
            let mut parking = self.parking.lock();
            parking.logs.get_mut(log).filter(|of_log| !of_log.is_full()).and_then(OfLog::take_next)
        };
        if let Some(resume) = next
            && let Some(mut unused) = resume(Resumed { quarantine: Some(self.clone()), log })
        {
            // the hive was dropped, and nothing runs any more
            unused.quarantine = None
        }
    }

    /// Checks whether the last process ended cleanly, and a marker of this one is committed: then nobody waits for a marker.
    fn are_all_unsuspected(&self) -> bool {
        !self.unclean.load(Ordering::Acquire) && self.turns.lock().is_any()
    }

    /// Resumes all work at once if none of it has to wait any more. Otherwise each piece would wait until the handlers of the one
    /// before it have run: a piece that waits for no marker resumes the next one when it has ended.
    pub(super) fn resume_all_if_unsuspected(&self) {
        if self.are_all_unsuspected() {
            let logs = self.parking.lock().logs.len();
            (0..logs).for_each(|log| self.resume_all_of(log))
        }
    }

    /// Resumes all work of a log at once, because it has nothing to wait for, or the hive no longer leads the log.
    pub(super) fn resume_all_of(&self, log: usize) {
        let all = self.parking.lock().logs.get_mut(log).map(|of_log| {
            of_log.keys.clear();
            std::mem::take(&mut of_log.parked)
        });
        for (_, resume) in all.into_iter().flatten() {
            drop(resume(Resumed { quarantine: None, log }))
        }
    }

    /// Resumes all work, because the hive stops. From now on, none is parked.
    pub(super) fn end_parking(&self) {
        let logs = {
            let mut parking = self.parking.lock();
            parking.is_over = true;
            parking.logs.len()
        };
        (0..logs).for_each(|log| self.resume_all_of(log))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutant::Mutation;
    use parking_lot::Mutex;

    const MOST: usize = limits::MARKER_WAITERS_PER_LOG_MAX;

    /// The pieces that were resumed and have not run yet.
    type Running = Arc<Mutex<Vec<(usize, Resumed)>>>;

    fn park(quarantine: &Quarantine, log: usize, key: usize, running: &Running) -> bool {
        let running = running.clone();
        let resume = move |resumed| {
            running.lock().push((key, resumed));
            None
        };
        quarantine.park_at(log, || false, key, || Box::new(resume))
    }

    /// Returns the piece that was resumed, if there is just one. It ends when it is dropped.
    fn next(running: &Running) -> Option<(usize, Resumed)> {
        let mut running = running.lock();
        assert!(running.len() <= 1, "one after the other");
        running.pop()
    }

    #[test]
    fn parked_work_is_resumed_piece_by_piece() {
        let quarantine = Arc::new(Quarantine::new(&[], 2, Mutation::default()));
        let running = Running::default();
        let mut waiting: Vec<_> = (1..MOST).map(|_| quarantine.waits(0)).collect();
        assert!(!park(&quarantine, 0, 1, &running), "one more thread may wait");
        waiting.push(quarantine.waits(0));
        assert!([1, 2, 1, 3].iter().all(|key| park(&quarantine, 0, *key, &running)));
        assert!(!park(&quarantine, 1, 4, &running), "nobody waits for the other log");
        assert!(next(&running).is_none());

        waiting.pop();
        let (first, resumed) = next(&running).unwrap();
        drop(resumed);
        let (second, resumed) = next(&running).unwrap();
        // this piece waits for its marker before it ends
        waiting.push(quarantine.waits(0));
        drop(resumed);
        assert!(next(&running).is_none());
        waiting.pop();
        let (third, resumed) = next(&running).unwrap();
        assert_eq!([first, second, third], [1, 2, 3], "each once, although one was to be parked twice");
        drop(resumed);
        assert!(next(&running).is_none());
    }

    #[test]
    fn all_work_is_resumed_when_the_hive_stops_or_loses_the_log() {
        let quarantine = Arc::new(Quarantine::new(&[], 2, Mutation::default()));
        let running = Running::default();
        let _waiting: Vec<_> = (0..2 * MOST).map(|at| quarantine.waits(at % 2)).collect();
        let resumed = || std::mem::take(&mut *running.lock()).len();
        assert!((0..4).all(|key| park(&quarantine, key % 2, key, &running)));
        quarantine.forget(0);
        assert_eq!(resumed(), 2);
        quarantine.stop_waiting();
        assert_eq!(resumed(), 2);
        assert!(!park(&quarantine, 1, 1, &running), "nobody waits any more");
    }
}
