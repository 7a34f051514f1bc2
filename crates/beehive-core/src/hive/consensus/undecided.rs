//! The state of a [`LogClient`](super::log_client::LogClient): the entries of its log that are not decided yet, and the
//! consumed messages and acknowledgments that no entry contains yet.

use crate::cell::{BeeId, CellId};
use crate::hash::HashMap;
use crate::hive::consensus::journal::{
    Acked, AppId, Consumed, Entry, EntryNumber, MessageId, Record, Visited, Work,
};
use crate::hive::consensus::open_sweeps::OpenSweeps;
use crate::limits;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Maximum number of sweeps whose noted visits are searched for those of one sweep.
const SWEEPS_EXAMINED_MAX: usize = 4;

/// Maximum number of runs for which an open entry reserves memory at its start.
pub(super) const RUNS_EXPECTED_MAX: usize = 256;

/// An entry in flight: either the journal has not yet decided it, or the hive has not yet processed the decision.
pub(super) enum Undecided<W: ?Sized> {
    /// Runs of bees. When the entry is decided, the bees are woken. If the entry is dead, they execute these runs
    /// again.
    Turn {
        /// The bees to wake. A bee with several runs in the entry may occur several times.
        bees: Vec<Arc<W>>,
        /// Number of runs in the entry.
        runs: u32,
        /// The visits without effect that the entry records. If the entry is dead, a later one must record them.
        visited: Vec<Visited>,
    },
    /// One of the hive's own records, which is appended again until it is committed.
    Said(Arc<Entry>, oneshot::Sender<()>),
}

/// The open entry, which collects runs of bees until it is appended to the journal. The entry already has its number,
/// so a bee knows immediately which entry contains its run.
pub(super) struct Open {
    pub(super) number: EntryNumber,
    pub(super) after: EntryNumber,
    pub(super) works: Vec<Arc<Work>>,
    /// Estimated size in bytes.
    pub(super) bytes: usize,
    /// Whether [`LogClient::append_old`](super::log_client::LogClient::append_old) has already found the entry open.
    pub(super) is_old: bool,
}

pub(super) struct State<W: ?Sized> {
    /// The number of the newest entry, dead ones included.
    pub(super) next: EntryNumber,
    /// The number of the newest entry that is not dead. The next entry is executed on top of it.
    pub(super) last: EntryNumber,
    /// The newest entry, while it is still open. No later entry is appended to the journal before it.
    pub(super) open: Option<Open>,
    /// Number of runs in the newest entry that has been appended, at most `RUNS_EXPECTED_MAX`.
    pub(super) runs_before: usize,
    /// The entries in flight, including the open entry.
    pub(super) undecided: BTreeMap<EntryNumber, Undecided<W>>,
    /// For each dead entry, the number of its runs that bees have not yet taken back. An entry without such runs is
    /// removed.
    pub(super) dead: HashMap<EntryNumber, u32>,
    /// Messages that bees have handled without effect on top of committed state, and that no entry has recorded as
    /// consumed.
    pub(super) consumed: BTreeMap<(AppId, BeeId), Consumed>,
    /// Size of `consumed`, in bytes.
    pub(super) consumed_bytes: usize,
    /// The size that `consumed` may reach before it is logged, or made smaller.
    pub(super) consumed_bytes_max: usize,
    /// Number of entries in flight that record consumed messages alone.
    pub(super) consumed_in_flight: usize,
    /// Acknowledgments, not yet in any entry, of messages from this log that bees in other logs have handled.
    pub(super) acked: Vec<Acked>,
    /// Number of messages in `acked`.
    pub(super) messages_acked: u64,
    /// Cells that this log's sweeps have visited, and that no entry has recorded as visited. If bees may move, these
    /// are all visits, otherwise only those without effect.
    pub(super) visited: Vec<Visited>,
    /// Number of cells in `visited`.
    pub(super) cells_visited: usize,
    /// The sweeps of this log, according to its committed entries. Used only if bees may move.
    pub(super) sweeps: OpenSweeps,
    /// Whether the hive is over, or has left the log, so that nobody waits for an entry.
    pub(super) is_over: bool,
}

/// The bees and tasks that waited for entries when the hive ended. Dropping this tells the tasks.
pub(super) type Waiters<W> = (Vec<Arc<W>>, Vec<oneshot::Sender<()>>);

/// The journal's decision about an entry, as far as the hive knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// The journal has not decided the entry yet.
    Open,
    /// The entry is committed.
    Committed,
    /// The entry never takes effect.
    Dead,
}

impl<W: ?Sized> State<W> {
    /// Assigns the next entry's number. Also returns the number of the entry on which the next one is executed.
    pub(super) fn number(&mut self) -> (EntryNumber, EntryNumber) {
        debug_assert!(self.open.is_none(), "the open entry is the newest one until it is appended");
        self.next = self.next.next();
        (self.next, std::mem::replace(&mut self.last, self.next))
    }

    /// Adds a run to the open entry and opens an entry if there is none. Returns the entry's number.
    /// `visited` contains those visits of the run's [`Work`] that [`State::take_visited`] has returned.
    pub(super) fn add(
        &mut self,
        bee: Arc<W>,
        work: Arc<Work>,
        visited: Vec<Visited>,
        bytes: usize,
    ) -> EntryNumber {
        if self.open.is_none() {
            let (number, after) = self.number();
            // an entry is often as large as the one before it
            let works = Vec::with_capacity(self.runs_before);
            self.open = Some(Open { number, after, works, bytes: 0, is_old: false });
            let (bees, visited) = (Vec::with_capacity(self.runs_before), Vec::new());
            self.undecided.insert(number, Undecided::Turn { bees, runs: 0, visited });
        }

        let Some(open) = &mut self.open else { return self.next };
        open.works.push(work);
        open.bytes += bytes;
        if let Some(Undecided::Turn { bees, runs, visited: of_entry }) = self.undecided.get_mut(&open.number)
        {
            *runs += 1;
            of_entry.extend(visited);
            // a bee that handles several messages in a row is woken once, and none after the hive has ended
            if !self.is_over
                && !bees.last().is_some_and(|last| std::ptr::addr_eq(Arc::as_ptr(last), Arc::as_ptr(&bee)))
            {
                bees.push(bee)
            }
        }
        open.number
    }

    /// Notes visits that no entry records yet.
    pub(super) fn note_visits(&mut self, sweep: MessageId, cells: &[CellId]) {
        self.cells_visited += cells.len();
        // only a few sweeps run at the same time
        match self.visited.iter_mut().rev().take(SWEEPS_EXAMINED_MAX).find(|visited| visited.sweep == sweep) {
            Some(visited) => visited.cells.extend_from_slice(cells),
            None => self.visited.push(Visited { sweep, cells: cells.to_vec() }),
        }
    }

    /// Takes a record of everything noted in `consumed`, if there is anything.
    pub(super) fn take_all_consumed(&mut self) -> Option<Record> {
        (self.consumed_bytes, self.consumed_bytes_max) = (0, limits::CONSUMED_BYTES_MAX);
        let consumed = std::mem::take(&mut self.consumed);
        if consumed.is_empty() {
            return None;
        }
        self.consumed_in_flight += 1;
        Some(Record::Consumed(consumed.into_values().collect()))
    }

    /// Same as [`State::take_all_consumed`], unless such a record is in flight: then the next one waits for its commit. A
    /// log that commits nothing would otherwise get record after record.
    pub(super) fn take_consumed_if_due(&mut self) -> Option<Record> {
        if self.consumed_in_flight == 0 { self.take_all_consumed() } else { None }
    }

    /// Notes that one of the hive's own records is in flight no longer.
    pub(super) fn is_decided(&mut self, record: &Record) {
        if matches!(record, Record::Consumed(_)) {
            self.consumed_in_flight -= 1
        }
    }

    /// Makes the notes about consumed messages smaller, if they are large and cannot be logged now.
    pub(super) fn compact_consumed(&mut self) {
        if self.consumed_bytes <= self.consumed_bytes_max {
            return;
        }
        self.consumed.values_mut().for_each(Consumed::compact);
        self.consumed_bytes = self.consumed.values().map(Consumed::size).sum();
        // so that each message is looked at only a few times
        self.consumed_bytes_max = limits::CONSUMED_BYTES_MAX.max(2 * self.consumed_bytes)
    }

    /// Takes a record of everything noted in `acked`, if there is anything.
    pub(super) fn take_acked(&mut self) -> Option<Record> {
        self.messages_acked = 0;
        let acked = std::mem::take(&mut self.acked);
        (!acked.is_empty()).then_some(Record::Acked(acked))
    }

    /// Takes a record of the noted visits, if there are any.
    pub(super) fn take_visits(&mut self) -> Option<Record> {
        let visited = self.take_visited();
        (!visited.is_empty()).then_some(Record::Visited(visited))
    }

    /// Takes the noted visits.
    pub(super) fn take_visited(&mut self) -> Vec<Visited> {
        self.cells_visited = 0;
        std::mem::take(&mut self.visited)
    }

    /// Notes that the hive is over, or has left the log. From now on, the state holds no bees.
    pub(super) fn end(&mut self) -> Waiters<W> {
        self.is_over = true;
        let (mut waking, mut telling) = (Vec::new(), Vec::new());
        for entry in self.undecided.values_mut() {
            match entry {
                Undecided::Turn { bees, .. } => waking.append(bees),
                Undecided::Said(_, committed) => {
                    telling.push(std::mem::replace(committed, oneshot::channel().0))
                }
            }
        }
        (waking, telling)
    }

    /// Takes the messages handled by a bee without effect.
    pub(super) fn take_consumed(&mut self, of: (AppId, BeeId)) -> Option<Consumed> {
        let consumed = self.consumed.remove(&of)?;
        self.consumed_bytes -= consumed.size();
        Some(consumed)
    }

    /// Makes the next entry from one of the hive's own records. The record is appended again each time its entry dies.
    pub(super) fn say(&mut self, record: Record, committed: oneshot::Sender<()>) -> Arc<Entry> {
        let (number, after) = self.number();
        let entry = Arc::new(Entry { number, after, record });
        // nobody waits after the hive has ended
        let committed = if self.is_over { oneshot::channel().0 } else { committed };
        self.undecided.insert(number, Undecided::Said(entry.clone(), committed));
        entry
    }
}
