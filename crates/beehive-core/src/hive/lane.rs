//! A sender's messages that cannot be delivered yet, because their cells have several owners or none is known.
//!
//! They wait at the sender, and hold up only later messages of the same sender to the same cells. Owners are asked for
//! all of them at once; merges go on side by side.

use crate::cell::{CellId, CellSet};
use crate::hive::HiveInner;
use crate::hive::errand::Errands;
use crate::hive::turn::{Place, Turn};
use crate::limits;
use crate::seams::BoxFuture;
use hashbrown::HashSet;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Whoever knows the owners of an app's cells.
pub(crate) trait Owners: Send + Sync {
    /// Completes when owners have been looked for, for each set of cells by itself.
    fn ask(self: Arc<Self>, sets: Vec<CellSet>, hive: &Arc<HiveInner>) -> BoxFuture<()>;
    /// Completes when all of `cells` had one owner. Must not be dropped before: it may hold a bee's body.
    fn unite(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()>;
}

/// A run of messages that waits at its sender.
pub(crate) trait Parked: Send {
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
    fn try_deliver(self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Parked>>;
    /// Who knows the owners of its cells. None: it can be delivered as soon as nothing is before it.
    fn owners(&self) -> Option<Arc<dyn Owners>>;
}

#[derive(Default)]
struct Waiting {
    parked: Vec<Box<dyn Parked>>,
    before: Before,
    /// Cells whose owners are being united.
    uniting: Vec<(u16, CellSet)>,
    resolving: bool,
}

/// What later messages must not overtake.
#[derive(Default)]
struct Before {
    cells: HashSet<(u16, CellId)>,
    sweeps: HashSet<u16>,
    apps: HashSet<u16>,
}

impl Before {
    fn add(&mut self, parked: &dyn Parked) {
        let app = parked.app();
        self.apps.insert(app);
        if parked.is_sweep() {
            self.sweeps.insert(app);
        }
        self.cells.extend(parked.cells().iter().map(|cell| (app, *cell)))
    }

    /// `earlier`: what it was made of. Only sweeps are looked at again, because they go on.
    fn blocks(&self, app: u16, cells: &[CellId], earlier: &[Box<dyn Parked>]) -> bool {
        cells.iter().any(|cell| self.cells.contains(&(app, *cell)))
            || (self.sweeps.contains(&app)
                && earlier.iter().any(|p| p.app() == app && p.is_sweep() && !p.has_passed(cells)))
    }

    fn blocks_parked(&self, later: &dyn Parked, earlier: &[Box<dyn Parked>]) -> bool {
        match later.is_sweep() {
            true => self.apps.contains(&later.app()),
            false => self.blocks(later.app(), later.cells(), earlier),
        }
    }
}

/// Sets of cells of one app whose owners are to be found.
struct Head {
    app: u16,
    is_sweep: bool,
    owners: Arc<dyn Owners>,
    sets: Vec<CellSet>,
}

type ErrandsByApp = Vec<(u16, Arc<Errands>)>;

/// What waits at one sender.
#[derive(Default)]
pub(crate) struct Lane {
    /// Written by the sender, and under the lock; a sender that reads `false` has nothing waiting.
    any: AtomicBool,
    waiting: Mutex<Waiting>,
    /// More waits, or owners have been united.
    news: Notify,
    /// By app: what the sender has left to others.
    errands: OnceLock<Mutex<ErrandsByApp>>,
}

/// A sender's lane; made when it first has to wait.
#[derive(Clone, Default)]
pub(crate) struct SenderLane(Option<Arc<Lane>>);

impl SenderLane {
    /// A lane that its clones share.
    pub(crate) fn shared() -> Self {
        SenderLane(Some(Arc::default()))
    }

    /// Whether a message to `cells` must wait behind an earlier one.
    #[inline(always)]
    pub(crate) fn blocks(&self, app: u16, cells: &[CellId]) -> bool {
        match &self.0 {
            Some(lane) if lane.any.load(Ordering::Acquire) => {
                let waiting = lane.waiting.lock();
                waiting.before.blocks(app, cells, &waiting.parked)
            }
            _ => false,
        }
    }

    /// Whether a message to all cells of an app must wait behind an earlier one.
    pub(crate) fn blocks_sweep(&self, app: u16) -> bool {
        match &self.0 {
            Some(lane) if lane.any.load(Ordering::Acquire) => lane.waiting.lock().before.apps.contains(&app),
            _ => false,
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|lane| !lane.any.load(Ordering::Acquire))
    }

    /// Whether something that the sender has left to others, for an app, is not done.
    #[inline(always)]
    pub(crate) fn has_errands(&self, app: u16) -> bool {
        match self.0.as_ref().and_then(|lane| lane.errands.get()) {
            Some(errands) => errands.lock().iter().any(|(of, errands)| *of == app && errands.are_open()),
            None => false,
        }
    }

    /// What the sender has left to others, for an app.
    pub(crate) fn errands(&mut self, app: u16) -> Arc<Errands> {
        let mut all = self.0.get_or_insert_with(Arc::default).errands.get_or_init(Mutex::default).lock();
        match all.iter().find(|(of, _)| *of == app) {
            Some((_, errands)) => errands.clone(),
            None => {
                let errands: Arc<Errands> = Arc::default();
                all.push((app, errands.clone()));
                errands
            }
        }
    }

    /// Lets a run wait, and sees to it that it is delivered.
    pub(crate) fn park(&mut self, parked: Box<dyn Parked>, hive: &Arc<HiveInner>) {
        let lane = self.0.get_or_insert_with(Arc::default).clone();
        let mut waiting = lane.waiting.lock();
        lane.any.store(true, Ordering::Release);
        waiting.before.add(&*parked);
        waiting.parked.push(parked);
        let resolving = std::mem::replace(&mut waiting.resolving, true);
        drop(waiting);
        if resolving {
            lane.news.notify_one()
        } else {
            hive.spawn(Box::pin(resolve(lane, hive.clone())));
        }
    }
}

impl Lane {
    /// What nothing is before and nobody is uniting, by app; a sweep by itself.
    fn heads(&self) -> Vec<Head> {
        let waiting = self.waiting.lock();
        let mut before = Before::default();
        let mut heads: Vec<Head> = Vec::new();
        for (at, parked) in waiting.parked.iter().enumerate() {
            let (app, cells, is_sweep) = (parked.app(), parked.cells(), parked.is_sweep());
            let behind = before.blocks_parked(&**parked, waiting.parked.get(..at).unwrap_or(&[]));
            before.add(&**parked);
            if behind || waiting.uniting.iter().any(|(of, united)| *of == app && united[..] == *cells) {
                continue;
            }
            match heads.iter_mut().find(|head| head.app == app && !head.is_sweep && !is_sweep) {
                Some(head) => head.sets.push(CellSet::from_slice(cells)),
                None => {
                    if let Some(owners) = parked.owners() {
                        heads.push(Head { app, is_sweep, owners, sets: vec![CellSet::from_slice(cells)] })
                    }
                }
            }
        }
        heads
    }

    /// Delivers, in order, what can be delivered. Whether something is left.
    fn retry(&self, turn: &mut Turn) -> bool {
        let mut waiting = self.waiting.lock();
        let mut left: Vec<Box<dyn Parked>> = Vec::new();
        let mut before = Before::default();
        for parked in std::mem::take(&mut waiting.parked) {
            let behind = before.blocks_parked(&*parked, &left);
            let result = if behind { Err(parked) } else { parked.try_deliver(turn) };
            if let Err(parked) = result {
                before.add(&*parked);
                left.push(parked)
            }
        }
        waiting.parked = left;
        waiting.before = before;
        let any = !waiting.parked.is_empty();
        self.any.store(any, Ordering::Release);
        waiting.resolving = any;
        any
    }

    /// Begins to unite the owners of what is still without one.
    fn unite(self: &Arc<Self>, hive: &Arc<HiveInner>) {
        for Head { app, owners, sets, .. } in self.heads() {
            for cells in sets {
                let mut waiting = self.waiting.lock();
                if waiting.uniting.len() >= limits::MERGES_PER_SENDER_MAX {
                    return;
                }
                waiting.uniting.push((app, cells.clone()));
                drop(waiting);
                let (lane, united) = (self.clone(), owners.clone().unite(cells.clone(), hive));
                // a task of its own, as it must not be dropped half-way
                hive.spawn(Box::pin(async move {
                    united.await;
                    lane.waiting.lock().uniting.retain(|(at, set)| *at != app || *set != cells);
                    lane.news.notify_one()
                }))
            }
        }
    }
}

async fn resolve(lane: Arc<Lane>, hive: Arc<HiveInner>) {
    loop {
        let ended = hive.ended.notified();
        if hive.is_over() {
            return;
        }
        for Head { owners, sets, .. } in lane.heads() {
            owners.ask(sets, &hive).await
        }
        if !Turn::with(&hive, Place::Runners, |turn| lane.retry(turn)) {
            return;
        }
        lane.unite(&hive);
        tokio::select! {
            () = lane.news.notified() => {}
            () = ended => {}
        }
    }
}
