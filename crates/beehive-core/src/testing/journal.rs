//! A journal for tests that exercises everything a real journal is allowed to do: it commits late and in batches,
//! and refuses entries at random.

use crate::cell::HiveId;
use crate::hive::consensus::journal::{Entry, EntryNumber, Journal, JournalEvents};
use crate::hive::consensus::registry::ColonyId;
use crate::seams::Platform;
use crate::testing::cluster::Followers;
use crate::testing::cluster::trace::{Brief, Kind, Log};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[derive(Default)]
struct State {
    arrived: VecDeque<Arc<Entry>>,
    /// Whether the hive uses the journal.
    is_begun: bool,
    /// The entries that the log receives when the hive begins to use it: the first one of a term, and late ones of the
    /// previous process.
    beginning: Vec<Arc<Entry>>,
    log: Vec<Vec<u8>>,
    last: EntryNumber,
    events: Option<Arc<dyn JournalEvents>>,
    random: u64,
    /// Number of entries left in the current block of `refuse_one_in` entries, and whether an entry of the block has
    /// been refused.
    block: (u64, bool),
    /// Number of further rounds in which the journal refuses every entry.
    deposed: u64,
    told: Option<Told>,
    /// The round of confirmations that the hive has asked for.
    asked: Option<u64>,
}

/// The trace of a cluster, and what its journal is.
pub(crate) struct Told {
    pub(crate) log: Arc<Log>,
    pub(crate) hive: HiveId,
    pub(crate) colony: ColonyId,
    /// The replicas of the hive, if an app has views.
    pub(crate) followers: Option<Arc<Followers>>,
}

impl State {
    /// Adds an entry to the log. The hive's replica applies it before the hive is told that it is committed.
    fn push(&mut self, entry: &Arc<Entry>) {
        self.log.push(entry.encode());
        if let Some(Told { colony, followers: Some(followers), .. }) = &self.told {
            followers.committed(*colony, entry)
        }
    }

    fn tell(&self, kind: Kind, what: impl std::fmt::Display) {
        if let Some(Told { log, hive, colony, .. }) = &self.told {
            log.add(kind, Some(*hive), None, format_args!("{colony}: {what}"))
        }
    }

    /// Tells that all entries up to the last one are committed, if `before` was the last one before.
    fn tell_committed(&self, before: EntryNumber) {
        if self.last != before {
            self.tell(Kind::Commit, format_args!("up to {}", self.last))
        }
    }

    /// Decides whether the next entry is refused. Exactly one entry of each block of `one_in` entries is refused, and
    /// its position is random. A test that appends this many entries is therefore certain to see a refusal, however
    /// fast it is.
    fn refuses(&mut self, one_in: u64) -> bool {
        if one_in == 0 {
            return false;
        }

        let (left, refused) = match self.block {
            (0, _) => (one_in, false),
            (left, refused) => (left.min(one_in), refused),
        };
        let refuses = !refused && self.below(left) == 0;
        self.block = (left - 1, refused || refuses);
        refuses
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound.max(1)
    }
}

/// A journal in memory that keeps its log as encoded entries.
pub struct TestJournal {
    state: Mutex<State>,
    /// One entry in this many is refused. 0 means that no entry is refused.
    refuse_one_in: AtomicU64,
    /// One refusal in this many deposes the journal; 0 means none.
    depose_one_in: AtomicU64,
    stopped: AtomicBool,
    stalled: AtomicBool,
    /// The time by which each round of commits is later than usual, in nanoseconds.
    delay: AtomicU64,
    /// Whether another hive may lead the log.
    is_of_cluster: AtomicBool,
    /// Whether the log also contains the entries that were executed on refused ones.
    logs_dead: AtomicBool,
    refused: AtomicU64,
}

impl std::fmt::Debug for TestJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestJournal")
            .field("stopped", &self.stopped)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

impl TestJournal {
    /// Starts a journal that continues after entry number `last`, refuses one of every `refuse_one_in` entries (none
    /// if this is 0), and derives its random choices from `seed`.
    #[expect(clippy::disallowed_methods, reason = "it commits late in real time, on a thread of its own")]
    pub fn start(seed: u64, refuse_one_in: u64, last: impl Into<EntryNumber>) -> Arc<TestJournal> {
        let journal = TestJournal::new(seed, refuse_one_in, last);

        // the weak reference lets the thread end with the journal; otherwise it would run as long as the test
        // program
        let committing = Arc::downgrade(&journal);
        std::thread::spawn(move || {
            while let Some(journal) = committing.upgrade().filter(|journal| !journal.is_stopped()) {
                let pause = journal.state.lock().below(1_000);
                drop(journal);
                std::thread::sleep(Duration::from_micros(pause));
                if let Some(journal) = committing.upgrade() {
                    journal.commit_some()
                }
            }
        });

        journal
    }

    /// Same as [`TestJournal::start`], but commits in the time of a platform, and writes to a trace.
    pub(crate) fn on<P: Platform + Clone>(
        platform: &P,
        told: Told,
        seed: u64,
        refuse_one_in: u64,
        last: impl Into<EntryNumber>,
    ) -> Arc<TestJournal> {
        let journal = TestJournal::new(seed, refuse_one_in, last);
        journal.state.lock().told = Some(told);
        journal.is_of_cluster.store(true, Ordering::Release);
        let (committing, clock) = (Arc::downgrade(&journal), platform.clone());
        platform.spawn(Box::pin(async move {
            while let Some(journal) = committing.upgrade().filter(|journal| !journal.is_stopped()) {
                let pause = Duration::from_micros(journal.state.lock().below(1_000));
                let pause = pause + Duration::from_nanos(journal.delay.load(Ordering::Relaxed));
                drop(journal);
                clock.sleep(pause).await;
                if let Some(journal) = committing.upgrade() {
                    journal.commit_some()
                }
            }
        }));
        journal
    }

    /// When the hive begins to use the journal, the log gets `blank`, the first entry of a term
    /// ([`LogState::begin_term`](beehive_protocol::LogState::begin_term)), and then `late`, what an earlier process has
    /// appended.
    pub fn begin_with(&self, blank: Entry, late: impl IntoIterator<Item = Arc<Entry>>) {
        self.state.lock().beginning = std::iter::once(Arc::new(blank)).chain(late).collect()
    }

    /// Removes the entries that wait to be committed, and returns them, oldest first.
    pub fn take_waiting(&self) -> Vec<Arc<Entry>> {
        self.state.lock().arrived.drain(..).collect()
    }

    /// Another hive begins to lead the log: from now on, the journal commits nothing, and reports nothing. Some of the oldest entries
    /// that wait are committed, and the hive does not know it. Returns the others, oldest first.
    pub fn lose(&self) -> Vec<Arc<Entry>> {
        let mut state = self.state.lock();
        self.stopped.store(true, Ordering::Release);
        let bound = state.arrived.len() as u64 + 1;
        let before = state.last;
        for _ in 0..state.below(bound) {
            let Some(entry) = state.arrived.pop_front() else { break };
            if entry.after == state.last {
                state.last = entry.number;
                state.push(&entry)
            }
        }
        state.tell_committed(before);
        state.arrived.drain(..).collect()
    }

    /// Reports that the hive no longer leads the log.
    pub fn tell_deposed(&self) {
        let events = self.state.lock().events.clone();
        if let Some(events) = events {
            events.deposed()
        }
    }

    fn new(seed: u64, refuse_one_in: u64, last: impl Into<EntryNumber>) -> Arc<TestJournal> {
        Arc::new(TestJournal {
            state: Mutex::new(State { random: seed | 1, last: last.into(), ..State::default() }),
            refuse_one_in: AtomicU64::new(refuse_one_in),
            depose_one_in: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            is_of_cluster: AtomicBool::new(false),
            delay: AtomicU64::new(0),
            logs_dead: AtomicBool::new(false),
            refused: AtomicU64::new(0),
        })
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Decides everything that was appended.
    pub(crate) fn commit_waiting(&self) {
        while self.waiting() > 0 && !self.is_stopped() {
            self.commit_some()
        }
    }

    fn commit_some(&self) {
        let (events, last, refused, asked) = {
            let mut state = self.state.lock();
            // Check under the lock: `stop` and `stall` set the flags under the same lock, so once they have returned,
            // this thread commits nothing more.
            if self.is_stopped() || self.stalled.load(Ordering::Acquire) {
                return;
            }

            let Some(events) = state.events.clone() else { return };
            let asked = state.asked.take();
            let count = 1 + state.below(200) as usize;
            let one_in = self.refuse_one_in.load(Ordering::Relaxed);
            let depose_one_in = self.depose_one_in.load(Ordering::Relaxed);
            let (mut refused, before) = (false, state.last);

            let is_deposed = state.deposed > 0;
            state.deposed = state.deposed.saturating_sub(1);

            for _ in 0..count {
                let Some(entry) = state.arrived.pop_front() else { break };
                if entry.after != state.last {
                    // This entry was executed on top of a refused one, so `aborted` has already reported that it does
                    // not take effect.
                    if self.logs_dead.load(Ordering::Relaxed) {
                        state.push(&entry)
                    }
                    continue;
                }

                if is_deposed || state.refuses(one_in) {
                    refused = true;
                    if !is_deposed && depose_one_in > 0 && state.below(depose_one_in) == 0 {
                        state.deposed = 1 + state.below(8)
                    }
                    break;
                }

                state.last = entry.number;
                state.push(&entry)
            }

            state.tell_committed(before);
            if refused {
                state.tell(Kind::Refuse, format_args!("after {}", state.last))
            }
            (events, state.last, refused, asked)
        };

        if let Some(round) = asked {
            events.confirmed(round)
        }
        events.released(last);
        if refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
            events.aborted(last)
        }
    }

    /// Makes one refusal in `one_in` depose the journal, as if another hive were leading its log: for some milliseconds
    /// the journal refuses everything, and then it leads again.
    pub fn depose(&self, one_in: u64) {
        self.depose_one_in.store(one_in, Ordering::Relaxed)
    }

    /// Sets whether the log also contains the entries that were executed on a refused one. They have no effect, because
    /// each entry names the one before it. By default, the journal drops them.
    pub fn log_dead_entries(&self, logs: bool) {
        self.logs_dead.store(logs, Ordering::Relaxed)
    }

    /// Accepts all further entries.
    pub fn accept_all(&self) {
        self.refuse_one_in.store(0, Ordering::Relaxed)
    }

    /// Stops committing permanently, as if the process had crashed here.
    pub fn stop(&self) {
        let _no_commit_under_way = self.state.lock();
        self.stopped.store(true, Ordering::Release)
    }

    /// Suspends or resumes commits. This simulates a temporarily full disk, or a lost quorum.
    pub fn stall(&self, stalled: bool) {
        let _no_commit_under_way = self.state.lock();
        self.stalled.store(stalled, Ordering::Release)
    }

    /// Makes each round of commits later than usual by `delay`. This simulates a slow disk. It has no effect on a journal of
    /// [`TestJournal::start`].
    pub(crate) fn slow_down(&self, delay: Duration) {
        self.delay.store(delay.as_nanos() as u64, Ordering::Relaxed)
    }

    /// Returns the number of entries waiting to be committed.
    pub fn waiting(&self) -> usize {
        self.state.lock().arrived.len()
    }

    /// Returns the number of refusals.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the log so far, one encoded entry per element.
    pub fn log(&self) -> Vec<Vec<u8>> {
        self.state.lock().log.clone()
    }
}

impl Journal for TestJournal {
    fn append(&self, entry: Arc<Entry>) {
        let mut state = self.state.lock();
        assert!(state.is_begun, "the hive appends {:?} before it has called `begin`", entry.number);
        state.tell(Kind::Append, format_args!("{} {}", entry.number, Brief(&entry.record)));
        state.arrived.push_back(entry)
    }

    fn begin(&self) -> std::io::Result<()> {
        let mut state = self.state.lock();
        assert!(!std::mem::replace(&mut state.is_begun, true), "the hive calls `begin` a second time");
        for (at, entry) in std::mem::take(&mut state.beginning).into_iter().enumerate() {
            if at == 0 {
                state.last = entry.number
            }
            state.push(&entry)
        }
        Ok(())
    }

    fn may_lose_leadership(&self) -> bool {
        self.is_of_cluster.load(Ordering::Acquire)
    }

    fn confirm(&self, round: u64) {
        let mut state = self.state.lock();
        assert_eq!(state.asked, None, "the hive asks again before it is answered");
        state.asked = Some(round)
    }

    fn attach(&self, events: Arc<dyn JournalEvents>) {
        self.state.lock().events = Some(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_of_each_block_is_refused_and_not_always_the_same() {
        let mut state = State { random: 7, ..State::default() };
        let mut places = std::collections::BTreeSet::new();

        for _ in 0..200 {
            let refused: Vec<usize> = (0..5).filter(|_| state.refuses(5)).collect();
            assert_eq!(refused.len(), 1, "{refused:?}");
            places.insert(refused[0]);
        }

        assert_eq!(places.len(), 5);
        assert!((0..10).all(|_| !state.refuses(0)));
        assert!((0..10).all(|_| state.refuses(1)));
    }
}
