//! The ordered queue of one sender's blocked messages. The queue decides which message must wait behind which
//! other, which messages can be delivered, and which cells need an owner.

use crate::cell::{CellId, CellSet};
use crate::hash::HashMap;
use crate::hive::consensus::journal::LaneId;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::queue::QueueState;
use crate::hive::dispatch::turn::Turn;
use crate::limits;
use crate::seams::BoxFuture;
use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;

/// Finds owners for the cells of blocked messages. Implemented by an app's queen, and by the progress of a
/// sweep.
pub(crate) trait Owners: Send + Sync {
    /// Looks for the owner of each set of cells. Completes when all lookups are done, whether or not they
    /// found an owner.
    fn ask(self: Arc<Self>, sets: Vec<CellSet>, hive: &Arc<HiveInner>) -> BoxFuture<()>;
    /// Merges the owners of `cells`. Completes once a single bee has owned all of them. The caller must not
    /// drop the future earlier, because it may hold a bee's body.
    fn unite(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()>;
}

/// A run of messages, or a sweep, that waits in its sender's queue.
pub(crate) trait Blocked: Send {
    /// Returns the number of the target app.
    fn app(&self) -> u16;
    /// Returns the cells that the messages need; empty for a sweep.
    fn cells(&self) -> &[CellId];
    /// Returns the lane of the messages; [`LaneId::NONE`] for a sweep, because no hive of a cluster has sweeps.
    fn lane(&self) -> LaneId {
        LaneId::NONE
    }
    /// Checks whether this is a sweep, which visits all of the app's cells.
    fn is_sweep(&self) -> bool {
        false
    }
    /// For a sweep: checks whether it has already passed all of these cells.
    fn has_passed(&self, _: &[CellId]) -> bool {
        false
    }
    /// Takes note of the queue in which it is about to wait. Called again when the sender merges into another bee.
    fn enter(&mut self, _: &Arc<QueueState>) {}
    /// Tries to deliver the messages. Returns `self` if that is not yet possible, for example because the
    /// cells have several owners.
    fn try_deliver(self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Blocked>>;
    /// Returns the object that finds owners for the cells, or `None` if the delivery needs no owner and is
    /// only waiting for earlier entries.
    fn owners(&self) -> Option<Arc<dyn Owners>>;
}

/// Counts of blocked messages and sweeps, which determine whether a later message must wait.
#[derive(Default)]
struct Before {
    /// Number of blocked messages, by app and cell.
    cells: HashMap<(u16, CellId), usize>,
    /// Number of blocked sweeps, by app.
    sweeps: HashMap<u16, usize>,
    /// Number of blocked messages and sweeps, by app.
    apps: HashMap<u16, usize>,
}

/// Increments the count of `key`.
fn add<K: Hash + Eq>(to: &mut HashMap<K, usize>, key: K) {
    *to.entry(key).or_default() += 1
}

/// Decrements the count of `key` and removes it at zero.
fn remove<K: Hash + Eq>(from: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = from.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            from.remove(&key);
        }
    }
}

impl Before {
    fn add(&mut self, blocked: &dyn Blocked) {
        let app = blocked.app();
        add(&mut self.apps, app);
        if blocked.is_sweep() {
            add(&mut self.sweeps, app)
        }
        blocked.cells().iter().for_each(|cell| add(&mut self.cells, (app, *cell)))
    }

    fn remove(&mut self, app: u16, is_sweep: bool, cells: &[CellId]) {
        remove(&mut self.apps, app);
        if is_sweep {
            remove(&mut self.sweeps, app)
        }
        cells.iter().for_each(|cell| remove(&mut self.cells, (app, *cell)))
    }

    /// Checks whether a message to `cells` must wait. `earlier` contains the blocked entries counted in
    /// `self`. Only the sweeps among them are examined, because a sweep no longer blocks cells it has passed.
    fn blocks<'a>(
        &self,
        app: u16,
        cells: &[CellId],
        earlier: impl IntoIterator<Item = &'a Box<dyn Blocked>>,
    ) -> bool {
        cells.iter().any(|cell| self.cells.contains_key(&(app, *cell)))
            || (self.sweeps.contains_key(&app)
                && earlier.into_iter().any(|p| p.app() == app && p.is_sweep() && !p.has_passed(cells)))
    }

    /// Checks whether the blocked message or sweep `later` must wait behind `earlier`.
    fn blocks_blocked<'a>(
        &self,
        later: &dyn Blocked,
        earlier: impl IntoIterator<Item = &'a Box<dyn Blocked>>,
    ) -> bool {
        match later.is_sweep() {
            true => self.apps.contains_key(&later.app()),
            false => self.blocks(later.app(), later.cells(), earlier),
        }
    }
}

/// Sets of one app's cells whose messages are first in line and need an owner.
pub(crate) struct Head {
    pub(crate) app: u16,
    is_sweep: bool,
    pub(crate) owners: Arc<dyn Owners>,
    pub(crate) sets: Vec<CellSet>,
}

/// One sender's blocked messages, in the order in which they were sent.
///
/// A pass over the queue examines only the first [`limits::BLOCKED_EXAMINED_MAX`] entries. The entries
/// behind them keep waiting.
#[derive(Default)]
pub(crate) struct Queue {
    /// The messages and sweeps, oldest first.
    blocked: VecDeque<Box<dyn Blocked>>,
    /// The counts of all entries in `blocked`.
    before: Before,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocked.is_empty()
    }

    /// Adds a message or sweep at the end.
    pub(crate) fn push(&mut self, blocked: Box<dyn Blocked>) {
        self.before.add(&*blocked);
        self.blocked.push_back(blocked)
    }

    /// Adds a message before all others.
    pub(crate) fn push_first(&mut self, blocked: Box<dyn Blocked>) {
        self.before.add(&*blocked);
        self.blocked.push_front(blocked)
    }

    /// Takes the messages on these lanes out of the queue.
    pub(crate) fn take_lanes(&mut self, lanes: &[LaneId]) -> Vec<Box<dyn Blocked>> {
        let Queue { blocked, before } = std::mem::take(self);
        drop(before);
        let (taken, stay): (Vec<_>, Vec<_>) =
            blocked.into_iter().partition(|one| lanes.contains(&one.lane()));
        stay.into_iter().for_each(|blocked| self.push(blocked));
        taken
    }

    /// Moves the entries of `other` to the end of this queue, which is that of `into`.
    pub(crate) fn append(&mut self, other: &mut Queue, into: &Arc<QueueState>) {
        other.before = Before::default();
        for mut blocked in other.blocked.drain(..) {
            blocked.enter(into);
            self.push(blocked)
        }
    }

    /// Checks whether a message to `cells` must wait behind an entry.
    pub(crate) fn blocks(&self, app: u16, cells: &[CellId]) -> bool {
        self.before.blocks(app, cells, &self.blocked)
    }

    /// Checks whether a sweep over an app must wait behind an entry.
    pub(crate) fn blocks_sweep(&self, app: u16) -> bool {
        self.before.apps.contains_key(&app)
    }

    /// Returns the sets of cells whose messages are first in line: one `Head` for each app and one for each
    /// sweep. Skips a set if `is_known` returns `true` for its app and cells.
    pub(crate) fn heads(&self, is_known: impl Fn(u16, &[CellId]) -> bool) -> Vec<Head> {
        let mut before = Before::default();
        let mut heads: Vec<Head> = Vec::new();

        for (at, blocked) in self.blocked.iter().take(limits::BLOCKED_EXAMINED_MAX).enumerate() {
            let (app, cells, is_sweep) = (blocked.app(), blocked.cells(), blocked.is_sweep());
            let behind = before.blocks_blocked(&**blocked, self.blocked.iter().take(at));

            before.add(&**blocked);

            if behind || is_known(app, cells) {
                continue;
            }

            match heads.iter_mut().find(|head| head.app == app && !head.is_sweep && !is_sweep) {
                Some(head) => head.sets.push(CellSet::from_slice(cells)),
                None => {
                    if let Some(owners) = blocked.owners() {
                        heads.push(Head { app, is_sweep, owners, sets: vec![CellSet::from_slice(cells)] })
                    }
                }
            }
        }

        heads
    }

    /// Delivers, in order, everything that can be delivered.
    pub(crate) fn deliver(&mut self, turn: &mut Turn) {
        // after a delivery, entries from behind the limit may be among the first ones
        while self.deliver_some(turn) && !self.blocked.is_empty() {}
    }

    /// Makes one pass over the first entries. Returns whether it delivered any and left others unexamined.
    fn deliver_some(&mut self, turn: &mut Turn) -> bool {
        let count = self.blocked.len().min(limits::BLOCKED_EXAMINED_MAX);
        let looked_at: Vec<Box<dyn Blocked>> = self.blocked.drain(..count).collect();
        let mut left: Vec<Box<dyn Blocked>> = Vec::new();
        let mut before = Before::default();

        for blocked in looked_at {
            let behind = before.blocks_blocked(&*blocked, &left);
            let (app, is_sweep) = (blocked.app(), blocked.is_sweep());
            let cells = CellSet::from_slice(blocked.cells());
            let result = if behind { Err(blocked) } else { blocked.try_deliver(turn) };

            match result {
                Ok(()) => self.before.remove(app, is_sweep, &cells),
                Err(blocked) => {
                    before.add(&*blocked);
                    left.push(blocked)
                }
            }
        }

        let more = left.len() < count && !self.blocked.is_empty();
        left.into_iter().rev().for_each(|blocked| self.blocked.push_front(blocked));
        more
    }
}
