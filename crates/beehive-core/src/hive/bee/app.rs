//! One app on one hive: its routes, its bees, and what is counted about it.

use crate::app::{App, Handlers, Handles};
use crate::cell::{BeeId, CellId, CellSet, HiveId};
use crate::hive::bee::bee_table::BeesById;
use crate::hive::bee::body::Body;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::pending::PendingRuns;
use crate::hive::bee::routing_table::Routes;
use crate::hive::bee::settings::Settings;
use crate::hive::consensus::journal::BeeImage;
use crate::hive::consensus::registry::{Registry, Unavailable};
use crate::hive::dispatch::handler::{Handler, handler_name};
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::Link;
use crate::hive::message::counters::HandlerCounters;
use crate::mapper::{Mapper, close_over_fusion};
use crate::message::Message;
use crate::state::column::Columns;
use crate::state::image::DecodeError;
use crate::time::Time;
use crate::view::Snapshots;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

pub(crate) struct AppRuntime<A: App> {
    pub(crate) index: u16,
    pub(crate) seed: u64,
    /// Dictionaries that are one cell each, closed under fusion.
    pub(crate) whole: u64,
    pub(crate) settings: Settings<A>,
    /// Copies of its dictionaries, if anybody reads them.
    pub(crate) snapshots: Option<Arc<Snapshots>>,
    pub(crate) routes: Routes<A>,
    pub(crate) registry: Arc<dyn Registry>,
    /// Where its records go, if they do.
    pub(crate) link: Option<Arc<Link>>,
    /// Decisions of the registry are carried out one at a time.
    pub(crate) queen: Mutex<Queen<A>>,
    idle: Mutex<Idle<A>>,
    /// By handler: the dictionary it sweeps.
    swept: OnceLock<Vec<Option<u32>>>,
    pub(crate) handlers: Box<[HandlerCounters]>,
    pub(crate) created: AtomicU64,
    pub(crate) retired: AtomicU64,
    pub(crate) merged: AtomicU64,
}

/// Bees that may retire.
struct Idle<A: App> {
    noted: Vec<Arc<Bee<A>>>,
    /// Those that have set timers: there may be very many for very long, so they are seldom looked at.
    with_timers: Vec<Arc<Bee<A>>>,
    /// Looks until they are.
    looks: u32,
}

/// Looks at the bees that may retire, for one at those that have set timers.
const LOOKS_PER_LOOK_AT_TIMERS: u32 = 32;

/// What the registry says about a set of cells.
#[derive(Clone)]
pub(crate) enum Standing {
    /// One bee owns them, and the routes say so.
    Owned,
    /// These bees must merge into the root first.
    Merging { root: BeeId, from: Vec<BeeId> },
    /// Decided on, but not carried out here yet.
    Undecided,
}

/// Somebody who wants to know about sets of cells.
pub(crate) struct Asked {
    pub(crate) sets: Vec<CellSet>,
    pub(crate) answer: oneshot::Sender<Result<Vec<Standing>, Unavailable>>,
}

/// What the queen remembers: bees by id, for decisions that name them.
pub(crate) struct Queen<A: App> {
    pub(crate) bees: BeesById<A>,
    /// A proposal about owners is under way.
    pub(crate) asking: bool,
    /// What goes into the next one.
    pub(crate) asked: VecDeque<Asked>,
}

impl<A: Handlers> AppRuntime<A> {
    pub(crate) fn new(
        index: u16,
        seed: u64,
        settings: Settings<A>,
        registry: Arc<dyn Registry>,
        link: Option<Arc<Link>>,
        snapshots_by_moment: bool,
    ) -> Arc<Self> {
        Arc::new(AppRuntime {
            index,
            seed,
            whole: close_over_fusion(A::MONOLITHIC, A::DICTS),
            snapshots: Snapshots::of(&settings.fresh().0, seed, snapshots_by_moment),
            settings,
            routes: Routes::new(),
            registry,
            link,
            queen: Mutex::new(Queen { bees: BeesById::default(), asking: false, asked: VecDeque::new() }),
            idle: Mutex::new(Idle { noted: Vec::new(), with_timers: Vec::new(), looks: 0 }),
            swept: OnceLock::new(),
            handlers: A::REPORT.iter().map(|_| HandlerCounters::default()).collect(),
            created: AtomicU64::new(0),
            retired: AtomicU64::new(0),
            merged: AtomicU64::new(0),
        })
    }
}

impl<A: App> AppRuntime<A> {
    pub(crate) fn mapper(&self, origin: HiveId) -> Mapper {
        Mapper::new(self.seed, self.whole, origin)
    }

    /// Whether the app may have these cells: it has them, or is not full.
    #[inline(always)]
    pub(crate) fn may_own(&self, cells: &[CellId]) -> bool {
        let Some(max) = A::OPTIONS.cells.map(|max| max as usize) else { return true };
        let owned = self.routes.len();
        // the look at each is for an app that is nearly full
        owned + cells.len() <= max
            || owned + cells.iter().filter(|cell| self.routes.find(**cell).is_none()).count() <= max
    }

    /// How many more cells the app may have.
    pub(crate) fn cells_left(&self) -> usize {
        A::OPTIONS.cells.map_or(usize::MAX, |max| (max as usize).saturating_sub(self.routes.len()))
    }

    /// An instance without state.
    pub(crate) fn fresh(&self) -> A {
        self.settings.fresh().0
    }

    /// An instance for stateless handlers, and the version of its settings.
    pub(crate) fn stateless(&self) -> (Box<A>, u32) {
        let (instance, settings) = self.settings.fresh();
        (Box::new(instance), settings)
    }

    /// Gives an instance with settings of version `settings` those that hold now. Returns their version.
    #[inline]
    pub(crate) fn up_to_date(&self, instance: &mut A, settings: u32) -> u32 {
        match A::HAS_SETTINGS && settings != self.settings.version() {
            true => self.settings.adopt(instance),
            false => settings,
        }
    }

    pub(crate) fn body(&self) -> Body<A> {
        let (app, settings) = self.settings.fresh();
        Body {
            app,
            settings,
            pending: self.link.as_ref().map(|link| PendingRuns::new(link)),
            queue: SenderQueue::default(),
            now: Time::ZERO,
            traffic: Default::default(),
        }
    }

    /// Makes the bee that a log describes.
    pub(crate) fn restore(
        self: &Arc<Self>,
        id: BeeId,
        image: BeeImage,
        queue: SenderQueue,
    ) -> Result<(), DecodeError> {
        let cells = image.cells;
        let mut body = self.body();
        for cell in image.state.images() {
            body.app.import(self.seed, &cell)?;
        }
        let elsewhere = A::DICTS.iter().any(|dict| {
            let (whole, mut elsewhere) = (self.whole_cell(dict.index), false);
            let mut look = |cell, _: &dyn Any| elsewhere |= !cells.contains(&whole.unwrap_or(cell));
            body.app.cells_of(dict.index, &mut look);
            elsewhere
        });
        if elsewhere {
            let why =
                "it holds cells that the log gives to nobody: was that written with another `seed`?".into();
            return Err(DecodeError { what: "a bee", why });
        }
        if let Some(pending) = &mut body.pending {
            pending.base = image.state;
            pending.seen = image.seen;
            pending.cells_logged = cells.len();
            pending.forget_unknown();
            pending.next_seq = image.next_seq;
        }
        if let Some(snapshots) = &self.snapshots {
            snapshots.restored(&mut body.app, image.now)
        }
        body.now = image.now;
        body.queue = queue;
        let cells: Vec<CellId> = cells.into_iter().collect();
        let bee = Bee::new(self, id, &cells, body);
        for cell in &cells {
            self.routes.set(*cell, &bee)
        }
        self.queen.lock().bees.insert(bee);
        Ok(())
    }

    /// A bee has become idle without any content.
    pub(crate) fn note_idle(&self, bee: &Arc<Bee<A>>) {
        self.idle.lock().noted.push(bee.clone())
    }

    pub(crate) fn take_idle(&self) -> Vec<Arc<Bee<A>>> {
        let mut idle = self.idle.lock();
        let mut taken = std::mem::take(&mut idle.noted);
        idle.looks += 1;
        if idle.looks >= LOOKS_PER_LOOK_AT_TIMERS {
            idle.looks = 0;
            taken.append(&mut idle.with_timers)
        }
        taken
    }

    /// Bees would have retired but for the timers that they have set.
    pub(crate) fn note_with_timers(&self, mut bees: Vec<Arc<Bee<A>>>) {
        self.idle.lock().with_timers.append(&mut bees)
    }

    pub(crate) fn set_swept(&self, swept: Vec<Option<u32>>) {
        let _ = self.swept.set(swept);
    }

    /// The dictionary that a handler sweeps.
    pub(crate) fn swept(&self, handler: usize) -> Option<u32> {
        self.swept.get()?.get(handler).copied().flatten()
    }

    /// The one cell of a dictionary that is one.
    pub(crate) fn whole_cell(&self, dict: u32) -> Option<CellId> {
        let info = A::DICTS.iter().find(|d| d.index == dict)?;
        (self.whole & (1 << dict) != 0).then(|| info.whole(self.seed))
    }

    pub(crate) fn bees(&self) -> usize {
        self.queen.lock().bees.len()
    }

    pub(crate) fn count_created(&self) {
        self.created.fetch_add(1, Ordering::Relaxed);
    }
}

impl<'a> Handler<'a> {
    /// Returns the handler of messages of type `M` in `app`.
    #[inline]
    pub(crate) fn of<A: Handlers + Handles<M>, M: Message>(app: &'a AppRuntime<A>) -> Handler<'a> {
        Handler {
            app: app.index,
            app_name: A::NAME,
            number: A::HANDLER,
            name: handler_name::<A, M>(),
            message: M::NAME,
            #[cfg(feature = "testing")]
            is_of_a_sweep: M::OF_A_SWEEP,
            counters: &app.handlers[A::HANDLER],
            link: app.link.as_ref(),
        }
    }
}
