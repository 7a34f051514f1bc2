//! The state of one app on one hive: its routing table, its bees, its settings and its counters.

use crate::app::{AppOptions, Handlers, Handles};
use crate::cell::{BeeId, CellId, CellSet, HiveId};
use crate::hive::bee::asleep::Asleep;
use crate::hive::bee::bee_table::BeesById;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::executed::Executed;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::pending::PendingRuns;
use crate::hive::bee::routing_table::Routes;
use crate::hive::bee::settings::Settings;
use crate::hive::consensus::journal::AppShapes;
use crate::hive::consensus::logs::Clients;
use crate::hive::consensus::registry::{ColonyId, Registry, RegistryState, Unavailable};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{Executing, Link};
use crate::hive::dispatch::types::handler::{Handler, LoggedName, handler_name};
use crate::hive::message::counters::HandlerCounters;
use crate::mapper::{DictInfo, Mapper, close_over_fusion};
use crate::message::Message;
use crate::report::HandlerReport;
use crate::state::any::{self, AnyState};
use crate::time::Time;
use crate::view::{Source, Views};
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

/// The clients of all logs that a hive leads.
type AllLed = Arc<Clients<dyn Executing>>;

/// The state of one app on one hive.
pub(crate) struct AppRuntime {
    /// The app's name.
    pub(crate) name: &'static str,
    /// The options from `#[app(..)]`.
    pub(crate) options: AppOptions,
    /// Descriptions of the dictionaries, in the order of the fields.
    pub(crate) dicts: &'static [DictInfo],
    /// The result of the derivation for each handler.
    pub(crate) report: &'static [HandlerReport],
    /// Whether the app has settings.
    pub(crate) has_settings: bool,
    /// Number of the app on this hive.
    pub(crate) index: u16,
    /// Seed of the hash function that turns keys into cell ids.
    pub(crate) seed: u64,
    /// Bit set of the dictionaries that form a single cell each, closed under fusion.
    pub(crate) whole: u64,
    pub(crate) settings: Settings,
    /// Makes the body of a new bee. The function knows the app's type.
    make_body: MakeBody,
    /// Puts a delivery that a bee had accepted back into the queue of its sender. It is in a room above this one.
    pub(crate) give_back: GiveBack,
    /// The published copies of the dictionaries; `None` if nothing reads them.
    pub(crate) views: Option<Arc<Views>>,
    pub(crate) routes: Routes,
    pub(crate) registry: Arc<dyn Registry>,
    /// The app's home log, which contains everything that belongs to no bee; `None` if the app is not
    /// journaled.
    pub(crate) link: Option<Arc<Link>>,
    /// The logs over which the app's new bees are spread, starting with its home log; empty if the app is not
    /// journaled.
    pub(crate) links: Vec<Arc<Link>>,
    /// Whether the hive is in a cluster.
    is_clustered: bool,
    /// In a cluster: the clients of all logs that the hive leads, to which it may add more.
    led: Option<AllLed>,
    /// The colonies of the logs in `links`, in the same order; the colony of the bees in memory if there are none.
    colonies: Vec<ColonyId>,
    /// The bees by id, and the requests for the next proposal. The lock serializes the execution of the
    /// registry's decisions.
    pub(crate) queen: Mutex<Queen>,
    idle: Mutex<Idle>,
    /// For each handler, the dictionary it sweeps. Set once, when the hive starts.
    swept: OnceLock<Vec<Option<u32>>>,
    pub(crate) handlers: Box<[HandlerCounters]>,
    /// Empty queues for executed runs, which one thread has passed on to the next one that needs some.
    pub(super) queues_for_runs: Mutex<Vec<VecDeque<Executed>>>,
    /// Numbers of bees that were created, retired and merged. Relaxed ordering suffices, because only the
    /// status reads them.
    pub(crate) created: AtomicU64,
    pub(crate) retired: AtomicU64,
    pub(crate) merged: AtomicU64,
}

/// Candidates for retirement.
struct Idle {
    /// Bees that became idle and empty since the last call of [`AppRuntime::take_idle`].
    noted: Vec<Arc<Bee>>,
    /// Bees that are waiting only for their own timers. There may be many of them, and they may wait a long
    /// time, so they are checked only once in [`LOOKS_PER_LOOK_AT_TIMERS`] calls.
    with_timers: Vec<Arc<Bee>>,
    /// Number of calls of [`AppRuntime::take_idle`] since the last check of `with_timers`.
    looks: u32,
}

/// Number of checks of the idle bees per check of the bees that are waiting only for timers.
const LOOKS_PER_LOOK_AT_TIMERS: u32 = 32;

/// The registry's decision about one set of cells, as far as this hive has executed it.
#[derive(Clone)]
pub(crate) enum Standing {
    /// One bee owns the cells, and the routing table points to it.
    Owned,
    /// The bees in `from` must be merged into `root` first.
    Merging { root: BeeId, from: Vec<BeeId> },
    /// The routing table does not yet point to a single owner, so the caller has to ask again.
    Undecided,
}

/// A caller waiting for the owners of sets of cells.
pub(crate) struct OwnerRequest {
    pub(crate) sets: Vec<CellSet>,
    pub(crate) answer: oneshot::Sender<Result<Vec<Standing>, Unavailable>>,
}

/// The queen's state.
pub(crate) struct Queen {
    /// All bees of the app by id, because decisions of the registry name ids.
    pub(crate) bees: BeesById,
    /// The bees that have ended, until this hive's replica of the registry knows it. Until then, the registry names them, and
    /// the queen must not take them for bees that it has yet to create.
    pub(crate) ended: BTreeSet<BeeId>,
    /// Whether the hive has stopped, and has dropped its bees.
    pub(crate) is_cleared: bool,
    /// Whether a proposal about owners is in flight or is about to be made by a running `answer` task.
    pub(crate) asking: bool,
    /// The requests for the next proposal.
    pub(crate) asked: VecDeque<OwnerRequest>,
}

impl AppRuntime {
    /// `table` and `version` are the settings that `prototype` has. `in_memory` is the colony of the hive's bees that are
    /// not in a log. `links` are the app's logs, and `led` all logs that the hive leads, if it is in a cluster. `give_back` puts
    /// a delivery back into the queue of its sender. `views_from` is where the views get their contents.
    pub(crate) fn new<A: Handlers>(
        (index, seed): (u16, u64),
        prototype: A,
        (table, version): (toml::Table, u32),
        (registry, in_memory): (Arc<dyn Registry>, ColonyId),
        (links, led): (Vec<Arc<Link>>, Option<AllLed>),
        (views_from, give_back): (Source, GiveBack),
    ) -> Arc<Self> {
        let mut colonies: Vec<ColonyId> = links.iter().map(|link| link.colony()).collect();
        if colonies.is_empty() {
            colonies.push(in_memory)
        }
        Arc::new(AppRuntime {
            name: A::NAME,
            options: A::OPTIONS,
            dicts: A::DICTS,
            report: A::REPORT,
            has_settings: A::HAS_SETTINGS,
            index,
            seed,
            whole: close_over_fusion(A::MONOLITHIC, A::DICTS),
            views: Views::of(&prototype, seed, views_from),
            settings: Settings::new(Box::new(prototype), table, version),
            make_body: make_body::<A>,
            give_back,
            routes: Routes::new(),
            registry,
            link: links.first().cloned(),
            is_clustered: led.is_some(),
            led,
            links,
            colonies,
            queen: Mutex::new(Queen {
                bees: BeesById::default(),
                ended: BTreeSet::new(),
                is_cleared: false,
                asking: false,
                asked: VecDeque::new(),
            }),
            idle: Mutex::new(Idle { noted: Vec::new(), with_timers: Vec::new(), looks: 0 }),
            swept: OnceLock::new(),
            handlers: A::REPORT.iter().map(|_| HandlerCounters::default()).collect(),
            queues_for_runs: Mutex::default(),
            created: AtomicU64::new(0),
            retired: AtomicU64::new(0),
            merged: AtomicU64::new(0),
        })
    }
}

impl AppRuntime {
    /// Returns a mapper that derives this app's cells.
    pub(crate) fn mapper(&self, origin: HiveId) -> Mapper {
        Mapper::new(self.seed, self.whole, origin)
    }

    /// Checks whether the app stays within its cell limit if it also owns these cells. Cells that already
    /// have an owner do not count twice.
    #[inline(always)]
    pub(crate) fn may_own(&self, cells: &[CellId]) -> bool {
        let Some(max) = self.options.cells.map(|max| max as usize) else { return true };
        let owned = self.routes.len();
        // the exact count looks up each cell, so it is done only when the limit is near
        owned + cells.len() <= max
            || owned + cells.iter().filter(|cell| self.routes.find(**cell).is_none()).count() <= max
    }

    /// Returns how many more cells the app may own.
    pub(crate) fn cells_left(&self) -> usize {
        self.options.cells.map_or(usize::MAX, |max| (max as usize).saturating_sub(self.routes.len()))
    }

    /// Returns the views to which the bees hand over what they have committed. `None` if there are none, or they follow the logs.
    pub(crate) fn own_views(&self) -> Option<&Arc<Views>> {
        self.views.as_ref().filter(|views| !views.is_following())
    }

    /// Returns an instance with the current settings and without state.
    pub(crate) fn fresh(&self) -> Box<dyn AnyState> {
        self.settings.fresh().0
    }

    /// Returns the app's name, and the shapes of its dictionaries.
    pub(crate) fn shapes(&self) -> AppShapes {
        AppShapes { name: self.name.to_string(), dictionaries: self.fresh().shapes() }
    }

    /// Returns an instance for stateless handlers, and the version of its settings.
    pub(crate) fn stateless(&self) -> (Box<dyn AnyState>, u32) {
        self.settings.fresh()
    }

    /// Updates an instance from settings version `settings` to the current settings. Returns the current
    /// version.
    #[inline]
    pub(crate) fn up_to_date(&self, instance: &mut dyn AnyState, settings: u32) -> u32 {
        match self.has_settings && settings != self.settings.version() {
            true => self.settings.adopt(instance),
            false => settings,
        }
    }

    /// Returns the colony, and thus the log, for a new bee that owns these cells.
    pub(crate) fn colony_for(&self, cells: &[CellId]) -> ColonyId {
        let first = cells.first().map_or(0, |cell| cell.0);
        // cell ids are hashes, so this spreads the bees evenly over the logs
        let at = (u128::from(first) * self.colonies.len() as u128) >> 64;
        self.colonies.get(at as usize).copied().unwrap_or_default()
    }

    /// Returns the colonies over which the app's bees are spread.
    pub(crate) fn colonies(&self) -> &[ColonyId] {
        &self.colonies
    }

    /// Checks whether the hive is in a cluster.
    #[inline]
    pub(crate) fn is_clustered(&self) -> bool {
        self.is_clustered
    }

    /// Returns the log of a colony. Returns `None` if the hive does not lead the colony, or the app is not journaled.
    pub(crate) fn log_of(&self, colony: ColonyId) -> Option<Arc<Link>> {
        if let Some(led) = &self.led {
            return led.of_colony(colony);
        }
        self.links.get(self.colonies.iter().position(|of| *of == colony)?).cloned()
    }

    /// Checks whether the app's bees may be in several logs.
    pub(crate) fn has_several_logs(&self) -> bool {
        self.led.is_some() || self.links.len() > 1
    }

    /// Returns the number of logs in which the app's bees may be.
    pub(crate) fn log_count(&self) -> usize {
        self.led.as_ref().map_or(self.links.len(), |led| led.all().len())
    }

    /// Gives up the logs that the hive no longer leads according to its replica of the registry, whose state is `view`. Returns
    /// whether there are any. Whoever adds a route that follows from this state must call this first: the next leader of such
    /// a log may have done what led to this route.
    pub(crate) fn leaves_lost(&self, view: &RegistryState) -> bool {
        let lost = self.led.as_ref().map(|led| led.lost(view)).unwrap_or_default();
        lost.iter().for_each(|link| link.depose());
        !lost.is_empty()
    }

    /// Returns the body of a new bee whose records go to `log`.
    pub(crate) fn body(&self, log: Option<&Arc<Link>>) -> Box<Body> {
        self.settings
            .with(|prototype, version| (self.make_body)(prototype, version, log.map(PendingRuns::new)))
    }

    /// Adds a bee of a log that this hive begins to lead, whose image the caller has. The bee accepts messages, and handles
    /// none before [`Bee::begin`].
    pub(crate) fn restore(self: &Arc<Self>, id: BeeId, cells: &[CellId], asleep: &Asleep) -> Arc<Bee> {
        let bee = Bee::restored(self, id, cells, asleep);
        let mut queen = self.queen.lock();
        if let Some(old) = queen.bees.get(id) {
            // the bee was in another log of this hive, which has not dropped it yet
            old.has_moved();
        }
        queen.bees.insert(bee.clone());
        cells.iter().for_each(|cell| self.routes.set(*cell, &bee));
        bee
    }

    /// Records that a bee has become idle and that all its cells are empty, which makes the bee a candidate
    /// for retirement.
    pub(crate) fn note_idle(&self, bee: &Arc<Bee>) {
        self.idle.lock().noted.push(bee.clone())
    }

    /// Takes the bees whose retirement the caller should now attempt.
    pub(crate) fn take_idle(&self) -> Vec<Arc<Bee>> {
        let mut idle = self.idle.lock();
        let mut taken = std::mem::take(&mut idle.noted);
        idle.looks += 1;
        if idle.looks >= LOOKS_PER_LOOK_AT_TIMERS {
            idle.looks = 0;
            taken.append(&mut idle.with_timers)
        }
        taken
    }

    /// Puts bees back on the list of bees that cannot retire before their timers fire.
    pub(crate) fn note_with_timers(&self, mut bees: Vec<Arc<Bee>>) {
        self.idle.lock().with_timers.append(&mut bees)
    }

    /// Sets the dictionary that each handler sweeps. Only the first call has an effect.
    pub(crate) fn set_swept(&self, swept: Vec<Option<u32>>) {
        let _ = self.swept.set(swept);
    }

    /// Returns the dictionary that a handler sweeps.
    pub(crate) fn swept(&self, handler: usize) -> Option<u32> {
        self.swept.get()?.get(handler).copied().flatten()
    }

    /// Returns the only cell of `dict` if that dictionary is a single cell.
    pub(crate) fn whole_cell(&self, dict: u32) -> Option<CellId> {
        let info = self.dicts.iter().find(|d| d.index == dict)?;
        (self.whole & (1 << dict) != 0).then(|| info.whole(self.seed))
    }

    /// Returns the number of bees.
    pub(crate) fn bees(&self) -> usize {
        self.queen.lock().bees.len()
    }

    pub(crate) fn count_created(&self) {
        self.created.fetch_add(1, Ordering::Relaxed);
    }
}

/// A function that puts a delivery back into the queue of its sender.
pub(crate) type GiveBack = fn(&Arc<AppRuntime>, Delivery, &Arc<HiveInner>);

/// A function that makes the body of a new bee from an instance with the settings of version `settings`.
type MakeBody = fn(&dyn AnyState, settings: u32, Option<Box<PendingRuns>>) -> Box<Body>;

fn make_body<A: Handlers>(
    prototype: &dyn AnyState,
    settings: u32,
    pending: Option<Box<PendingRuns>>,
) -> Box<Body> {
    let app = any::same::<A>(prototype).fresh();
    Box::new(Body {
        settings,
        pending,
        queue: SenderQueue::default(),
        now: Time::ZERO,
        traffic: Default::default(),
        app,
    })
}

impl<'a> Handler<'a> {
    /// Returns `app`'s handler for messages of type `M`.
    #[inline]
    pub(crate) fn of<A: Handlers + Handles<M>, M: Message>(app: &'a AppRuntime) -> Handler<'a> {
        Handler {
            app: app.index,
            app_name: A::NAME,
            number: A::HANDLER,
            name: handler_name::<A, M>(),
            message: M::NAME,
            message_type: const { LoggedName::of::<A, M>().number() },
            #[cfg(feature = "testing")]
            is_of_a_sweep: M::OF_A_SWEEP,
            counters: &app.handlers[A::HANDLER],
            link: app.link.as_ref(),
        }
    }
}
