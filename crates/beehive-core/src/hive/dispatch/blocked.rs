//! What waits at one sender, in order: who is behind whom, what can be delivered, whose owners are to be found.

use crate::cell::{CellId, CellSet};
use crate::hash::HashMap;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::Turn;
use crate::limits;
use crate::seams::BoxFuture;
use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;

/// Whoever knows the owners of an app's cells.
pub(crate) trait Owners: Send + Sync {
    /// Completes when owners have been looked for, for each set of cells by itself.
    fn ask(self: Arc<Self>, sets: Vec<CellSet>, hive: &Arc<HiveInner>) -> BoxFuture<()>;
    /// Completes when all of `cells` had one owner. Must not be dropped before: it may hold a bee's body.
    fn unite(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()>;
}

/// A run of messages that waits at its sender.
pub(crate) trait Blocked: Send {
    fn app(&self) -> u16;
    fn cells(&self) -> &[CellId];
    /// Goes to all cells of the app.
    fn is_sweep(&self) -> bool {
        false
    }
    /// A sweep that has reached all of these cells.
    fn has_passed(&self, _: &[CellId]) -> bool {
        false
    }
    /// Delivers it if its cells have one owner.
    fn try_deliver(self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Blocked>>;
    /// Who knows the owners of its cells. None: it can be delivered as soon as nothing is before it.
    fn owners(&self) -> Option<Arc<dyn Owners>>;
}

/// What later messages must not overtake: how many messages go to what.
#[derive(Default)]
struct Before {
    cells: HashMap<(u16, CellId), usize>,
    sweeps: HashMap<u16, usize>,
    apps: HashMap<u16, usize>,
}

fn add<K: Hash + Eq>(to: &mut HashMap<K, usize>, key: K) {
    *to.entry(key).or_default() += 1
}

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

    /// `earlier`: what it was made of. Only sweeps are looked at again, because they go on.
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

/// Sets of cells of one app whose owners are to be found.
pub(crate) struct Head {
    pub(crate) app: u16,
    is_sweep: bool,
    pub(crate) owners: Arc<dyn Owners>,
    pub(crate) sets: Vec<CellSet>,
}

/// Messages that wait, in the order in which they came.
///
/// Of very many only the first [`limits::PARKED_LOOKED_AT_MAX`] are looked at, each time that something may have changed:
/// what is behind those keeps waiting.
#[derive(Default)]
pub(crate) struct Queue {
    blocked: VecDeque<Box<dyn Blocked>>,
    before: Before,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocked.is_empty()
    }

    pub(crate) fn push(&mut self, blocked: Box<dyn Blocked>) {
        self.before.add(&*blocked);
        self.blocked.push_back(blocked)
    }

    /// Takes over what waits in another one.
    pub(crate) fn append(&mut self, other: &mut Queue) {
        other.before = Before::default();
        other.blocked.drain(..).for_each(|blocked| self.push(blocked))
    }

    /// Whether a message to `cells` must wait behind one of these.
    pub(crate) fn blocks(&self, app: u16, cells: &[CellId]) -> bool {
        self.before.blocks(app, cells, &self.blocked)
    }

    /// Whether a message to all cells of an app must.
    pub(crate) fn blocks_sweep(&self, app: u16) -> bool {
        self.before.apps.contains_key(&app)
    }

    /// What nothing is before, by app; a sweep by itself. Not those of which `is_known` says so, by app and cells.
    pub(crate) fn heads(&self, is_known: impl Fn(u16, &[CellId]) -> bool) -> Vec<Head> {
        let mut before = Before::default();
        let mut heads: Vec<Head> = Vec::new();
        for (at, blocked) in self.blocked.iter().take(limits::PARKED_LOOKED_AT_MAX).enumerate() {
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

    /// Delivers, in order, what can be delivered.
    pub(crate) fn deliver(&mut self, turn: &mut Turn) {
        // when some have gone, others are among the first
        while self.deliver_some(turn) && !self.blocked.is_empty() {}
    }

    /// Whether something was delivered, and something was not looked at.
    fn deliver_some(&mut self, turn: &mut Turn) -> bool {
        let count = self.blocked.len().min(limits::PARKED_LOOKED_AT_MAX);
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
