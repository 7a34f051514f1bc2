//! A hive's end of its journal: numbers entries, and knows which of them are committed and which are dead.

use crate::hive::HiveInner;
use crate::hive::admission::outside_lanes::{Lanes, OutsideLane};
use crate::hive::dispatch::turn::{Place, Turn};
use crate::hive::log::journal::{Colony, Entry, Journal, JournalEvents, Record};
use crate::hive::log::quarantine::Care;
use crate::hive::log::without_bee::Unowned;
use crate::hive::route::recovery;
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
    /// Said until it is committed.
    Said(Record, oneshot::Sender<()>),
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

    /// Says something, from now on until it is committed.
    fn say(&mut self, record: Record, committed: oneshot::Sender<()>) -> Entry {
        let entry = self.number(record.clone());
        self.pending.insert(entry.number, Pending::Said(record, committed));
        entry
    }

    /// Of the entries that somebody looks after, those that have met their fate, in order.
    fn decided(&self) -> Vec<(u64, Fate)> {
        let upto = self.dead.last().map_or(0, |(_, end)| end - 1).max(self.released);
        let fates = self.pending.range(..=upto).map(|(number, _)| (*number, self.fate(*number)));
        fates.filter(|(_, fate)| *fate != Fate::Open).collect()
    }

    /// A range is of interest as long as somebody has an entry in it.
    fn forget_dead(&mut self) {
        let oldest = self.pending.first_key_value().map_or(u64::MAX, |(number, _)| *number);
        self.dead.retain(|(_, end)| *end > oldest);
    }
}

pub(crate) struct Link {
    journal: Arc<dyn Journal>,
    state: Mutex<State>,
    /// Of those outside.
    pub(crate) lanes: Lanes,
    pub(crate) unowned: Unowned,
    pub(crate) care: Care,
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
            care: Care::new(journal.clone(), colony),
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

    /// Appends a record that rests on no entry before it, and again whenever it is refused: before anything that is appended
    /// after it, and behind what was said before. Tells when it is committed; nothing if the hive is gone.
    pub(crate) fn say(&self, record: Record) -> oneshot::Receiver<()> {
        let (committed, told) = oneshot::channel();
        let mut state = self.state.lock();
        let entry = state.say(record, committed);
        self.journal.append(entry);
        told
    }

    /// As [`Link::say`]; completes when it is committed, or the hive is gone.
    pub(crate) async fn commit(&self, record: Record) {
        let _ = self.say(record).await;
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
        state.forget_dead();
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
            for (number, fate) in state.decided() {
                if let Some(Pending::Bee(bee)) = state.pending.get(&number) {
                    // stays until the bee has taken note
                    bees.push(bee.clone());
                    continue;
                }
                match (state.pending.remove(&number), fate) {
                    (Some(Pending::Said(record, committed)), Fate::Dead) => {
                        let again = state.say(record, committed);
                        // under the lock: nobody comes before it who did not before
                        self.link.journal.append(again)
                    }
                    (Some(Pending::Said(_, committed)), _) => {
                        let _ = committed.send(());
                    }
                    _ => {}
                }
            }
            state.forget_dead()
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
