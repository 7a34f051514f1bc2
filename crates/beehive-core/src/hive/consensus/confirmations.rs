//! Answers that no entry confirms wait until the journal has confirmed that the hive still leads the log.
//!
//! A hive may have lost a log and not know it yet. The next leader may then have changed what this hive reads, and may have said
//! so to somebody. The commit of an entry shows that the hive still led the log when it appended the entry. A run that changes and
//! sends nothing has no entry, so the journal is asked instead, after the run:
//!
//! ```text
//!   run 1 ──► round 1 begins ───────────────────► confirmed: run 1 answers, round 2 begins ──► confirmed: 2, 3 and 4 answer
//!                 run 2, run 3, run 4 ──► they wait for round 2
//! ```
//!
//! A run does not take part in a round that had begun before it: the majority may have confirmed the leader before the run has
//! read.

use crate::hive::consensus::log_client::LogClient;
use crate::mutant::Mutant;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bees that wait for confirmations, by round. `W` is the type of a bee.
pub(crate) struct Confirmations<W: ?Sized> {
    rounds: Mutex<Rounds<W>>,
    /// The newest round that is confirmed.
    confirmed: AtomicU64,
}

struct Rounds<W: ?Sized> {
    /// The newest round that has begun.
    begun: u64,
    /// Whether it is under way.
    is_under_way: bool,
    /// The bees that wait for it.
    waiting: Vec<Arc<W>>,
    /// The bees that wait for the next one.
    next: Vec<Arc<W>>,
    /// Whether nobody is woken any more.
    is_over: bool,
}

impl<W: ?Sized> Default for Confirmations<W> {
    fn default() -> Self {
        let (waiting, next) = Default::default();
        let rounds = Rounds { begun: 0, is_under_way: false, waiting, next, is_over: false };
        Confirmations { rounds: Mutex::new(rounds), confirmed: AtomicU64::new(0) }
    }
}

impl<W: ?Sized> Confirmations<W> {
    /// Lets a bee wait for the first round that begins after this call. `asked` is the newest round for which it waits already.
    /// Returns the round, and whether the caller must begin it.
    fn wait(&self, bee: impl FnOnce() -> Arc<W>, asked: u64) -> (u64, bool) {
        let mut rounds = self.rounds.lock();
        let begins = !rounds.is_under_way && !rounds.is_over;
        if begins {
            rounds.begun += 1;
            rounds.is_under_way = true
        }
        let round = if begins { rounds.begun } else { rounds.begun + 1 };
        if asked != round && !rounds.is_over {
            let waiting = if begins { &mut rounds.waiting } else { &mut rounds.next };
            waiting.push(bee())
        }
        (round, begins)
    }

    /// Checks whether a round is confirmed.
    fn is_confirmed(&self, round: u64) -> bool {
        round <= self.confirmed.load(Ordering::Acquire)
    }

    /// Notes that a round is confirmed. Returns the bees that waited for it, and the round that the caller must begin, if there is
    /// one.
    fn confirm(&self, round: u64) -> (Vec<Arc<W>>, Option<u64>) {
        let mut rounds = self.rounds.lock();
        if round != rounds.begun || !rounds.is_under_way {
            return (Vec::new(), None);
        }
        self.confirmed.store(round, Ordering::Release);
        let next = std::mem::take(&mut rounds.next);
        rounds.is_under_way = !next.is_empty();
        if rounds.is_under_way {
            rounds.begun += 1
        }
        let next_round = rounds.is_under_way.then_some(rounds.begun);
        (std::mem::replace(&mut rounds.waiting, next), next_round)
    }

    /// Nobody waits any more, now and from now on. Returns the bees that have waited.
    #[must_use = "dropping a bee runs the app's code, which must not happen under a lock"]
    pub(crate) fn end(&self) -> Vec<Arc<W>> {
        let mut rounds = self.rounds.lock();
        rounds.is_over = true;
        let mut waiting = std::mem::take(&mut rounds.waiting);
        waiting.append(&mut rounds.next);
        waiting
    }
}

impl<W: ?Sized> LogClient<W> {
    /// Lets a bee wait until the journal confirms, after this call, that the hive leads the log: see [`Confirmations`]. `asked` is
    /// the newest confirmation for which the bee waits already. Returns the number of the confirmation; 0 if nobody else can lead
    /// the log.
    pub(crate) fn confirm(&self, bee: impl FnOnce() -> Arc<W>, asked: u64) -> u64 {
        let Some(confirmations) = &self.confirmations else { return 0 };
        if self.lanes.breaks(Mutant::ReadUnconfirmed) {
            return 0;
        }
        let (round, begins) = confirmations.wait(bee, asked);
        if begins {
            self.begin_confirmation(round)
        }
        round
    }

    fn begin_confirmation(&self, round: u64) {
        // without the lock, because the journal may take its time
        let journal = self.journal.lock().clone();
        if let Some(journal) = journal {
            journal.confirm(round)
        }
    }

    /// Checks whether the journal has confirmed that the hive leads the log.
    #[inline]
    pub(crate) fn is_confirmed(&self, confirmation: u64) -> bool {
        self.confirmations.as_ref().is_none_or(|confirmations| confirmations.is_confirmed(confirmation))
    }

    /// Notes that the journal has confirmed that the hive leads the log. Returns the bees that waited for this.
    pub(crate) fn confirmed(&self, round: u64) -> Vec<Arc<W>> {
        let Some(confirmations) = self.confirmations.as_ref().filter(|_| !self.is_deposed()) else {
            return Vec::new();
        };
        let (bees, next) = confirmations.confirm(round);
        // after the confirmation, so that who sees the new version sees that, too
        self.version.fetch_add(1, Ordering::Release);
        if let Some(next) = next {
            self.begin_confirmation(next)
        }
        bees
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_waits_for_a_round_that_begins_after_it() {
        let (confirmations, bees) = (Confirmations::<u32>::default(), [1, 2, 3].map(Arc::new));
        assert_eq!(confirmations.wait(|| bees[0].clone(), 0), (1, true));
        assert_eq!(confirmations.wait(|| bees[1].clone(), 0), (2, false));
        assert_eq!(confirmations.wait(|| bees[2].clone(), 0), (2, false));
        assert_eq!(confirmations.wait(|| bees[2].clone(), 2), (2, false), "it waits for it already");
        assert!(!confirmations.is_confirmed(1));
        assert_eq!(confirmations.confirm(1), (vec![bees[0].clone()], Some(2)));
        assert!(confirmations.is_confirmed(1) && !confirmations.is_confirmed(2));
        assert_eq!(confirmations.wait(|| bees[0].clone(), 1), (3, false), "round 2 has begun");
        assert_eq!(confirmations.confirm(2), (vec![bees[1].clone(), bees[2].clone()], Some(3)));
        assert_eq!(confirmations.confirm(2), (Vec::new(), None), "a report that comes twice");
        assert_eq!(confirmations.confirm(3), (vec![bees[0].clone()], None));
        assert_eq!(confirmations.wait(|| bees[0].clone(), 3), (4, true));
    }

    #[test]
    fn nobody_waits_after_the_end() {
        let (confirmations, bee) = (Confirmations::<u32>::default(), Arc::new(1));
        confirmations.wait(|| bee.clone(), 0);
        confirmations.wait(|| bee.clone(), 1);
        assert_eq!(confirmations.end().len(), 2);
        assert!(!confirmations.wait(|| bee.clone(), 2).1);
        assert_eq!(confirmations.end(), Vec::<Arc<u32>>::new());
        assert!(!confirmations.is_confirmed(1));
        assert_eq!(Arc::strong_count(&bee), 1)
    }
}
