//! A hive's end of its journal: numbers entries, and knows which of them are committed and which are dead.

use crate::hive::HiveInner;
use crate::hive::admission::{Lanes, OutsideLane};
use crate::hive::journal::{Colony, Entry, Journal, JournalEvents, Record};
use crate::hive::recovery;
use crate::hive::turn::{Place, Turn};
use crate::hive::unowned::Unowned;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// Somebody who has entries on their way, and looks after them when told that something has happened.
pub(crate) trait Executing: Send + Sync {
    fn nudge(self: Arc<Self>, turn: &mut Turn);
}

enum Pending {
    Bee(Arc<dyn Executing>),
    Waiter(oneshot::Sender<bool>),
}

#[derive(Default)]
struct State {
    next: u64,
    /// Number of the entry that the next one is executed on.
    last: u64,
    released: u64,
    /// Ranges of numbers that never took effect: first, and one past the last.
    dead: Vec<(u64, u64)>,
    pending: BTreeMap<u64, Pending>,
}

/// The fate of an entry so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Open,
    Committed,
    Dead,
}

impl State {
    fn fate(&self, number: u64) -> Fate {
        if self.dead.iter().any(|(first, end)| (*first..*end).contains(&number)) {
            Fate::Dead
        } else if number <= self.released {
            Fate::Committed
        } else {
            Fate::Open
        }
    }

    fn number(&mut self, record: Record) -> Entry {
        self.next += 1;
        let entry = Entry { number: self.next, after: self.last, record };
        self.last = self.next;
        entry
    }
}

pub(crate) struct Link {
    journal: Arc<dyn Journal>,
    state: Mutex<State>,
    /// Of those outside.
    pub(crate) lanes: Lanes,
    pub(crate) unowned: Unowned,
    /// The lane of those who emit or ask through the hive itself.
    pub(crate) own_lane: Arc<OutsideLane>,
    /// Goes up whenever the fate of an entry has changed.
    version: AtomicU64,
}

impl Link {
    /// Goes on where `colony` is; `chance` makes the hive's own lane.
    pub(crate) fn new(journal: Arc<dyn Journal>, colony: &Colony, chance: u64) -> Arc<Link> {
        let last = colony.last;
        let state = State { next: last, last, released: last, ..State::default() };
        let lanes = Lanes::new(recovery::lasting_lanes(colony));
        Arc::new(Link {
            journal,
            state: Mutex::new(state),
            own_lane: lanes.open(chance),
            lanes,
            unowned: Unowned::new(colony.seen.clone()),
            version: AtomicU64::new(0),
        })
    }

    /// Has the journal call the hive back.
    pub(crate) fn attach(self: &Arc<Self>, hive: &Arc<HiveInner>) {
        self.journal.attach(Arc::new(Events { link: self.clone(), hive: Arc::downgrade(hive) }))
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Appends what a bee did, unless one of the entries that it was executed on is dead.
    pub(crate) fn append(&self, bee: Arc<dyn Executing>, tail: &[u64], record: Record) -> Option<u64> {
        let mut state = self.state.lock();
        if tail.iter().any(|number| state.fate(*number) == Fate::Dead) {
            return None;
        }
        let entry = state.number(record);
        let number = entry.number;
        state.pending.insert(number, Pending::Bee(bee));
        // under the lock, so that the journal sees the numbers in order
        self.journal.append(entry);
        Some(number)
    }

    /// Appends a record. Tells whether it was committed; nothing if the hive is gone.
    pub(crate) fn append_waiting(&self, record: &Record) -> oneshot::Receiver<bool> {
        let mut state = self.state.lock();
        let entry = state.number(record.clone());
        let (sender, receiver) = oneshot::channel();
        state.pending.insert(entry.number, Pending::Waiter(sender));
        self.journal.append(entry);
        receiver
    }

    /// Appends a record until it is committed.
    pub(crate) async fn commit(&self, record: Record) {
        loop {
            match self.append_waiting(&record).await {
                Ok(true) => return,
                Ok(false) => {}
                // the hive is gone
                Err(_) => return,
            }
        }
    }

    /// The fates of entries; those that are decided are forgotten.
    pub(crate) fn fates(&self, numbers: impl Iterator<Item = u64>) -> Vec<Fate> {
        let mut state = self.state.lock();
        let fates: Vec<Fate> = numbers
            .map(|number| {
                let fate = state.fate(number);
                if fate != Fate::Open {
                    state.pending.remove(&number);
                }
                fate
            })
            .collect();
        // a range is of interest as long as somebody has an entry in it
        let oldest = state.pending.first_key_value().map_or(u64::MAX, |(number, _)| *number);
        state.dead.retain(|(_, end)| *end > oldest);
        fates
    }
}

struct Events {
    link: Arc<Link>,
    hive: Weak<HiveInner>,
}

impl Events {
    /// Tells those whose entries have met their fate.
    fn decided(&self, decide: impl FnOnce(&mut State)) {
        let Some(hive) = self.hive.upgrade() else { return };
        let mut bees: Vec<Arc<dyn Executing>> = Vec::new();
        {
            let mut state = self.link.state.lock();
            decide(&mut state);
            // under the lock: who is refused because of it finds that there is something to look at
            self.link.version.fetch_add(1, Ordering::Release);
            let decided: Vec<(u64, Fate)> = state
                .pending
                .keys()
                .map(|number| (*number, state.fate(*number)))
                .filter(|(_, fate)| *fate != Fate::Open)
                .collect();
            for (number, fate) in decided {
                match state.pending.get(&number) {
                    // stays until the bee has taken note
                    Some(Pending::Bee(bee)) => bees.push(bee.clone()),
                    _ => {
                        if let Some(Pending::Waiter(waiter)) = state.pending.remove(&number) {
                            let _ = waiter.send(fate == Fate::Committed);
                        }
                    }
                }
            }
        }
        Turn::with(&hive, Place::Runners, |turn| bees.into_iter().for_each(|bee| bee.nudge(turn)))
    }
}

impl JournalEvents for Events {
    fn released(&self, upto: u64) {
        self.decided(|state| state.released = state.released.max(upto))
    }

    fn aborted(&self, last: u64) {
        self.decided(|state| {
            if last < state.next {
                state.dead.push((last + 1, state.next + 1));
                state.last = last;
            }
        })
    }
}
