//! Configures and starts a hive.

use crate::app::{COPIES, Durability, Handlers};
use crate::cell::HiveId;
use crate::hive::admission::entrances::Entrances;
use crate::hive::admission::timer_wheel::TimerWheel;
use crate::hive::app_logs::AppLogs;
use crate::hive::bee::app::{AppRuntime, GiveBack};
use crate::hive::consensus::begun_sweeps::number_begun;
use crate::hive::consensus::former_homes;
use crate::hive::consensus::journal::{
    AppId, AppShapes, Journal, LogState, LoggedSettings, Shapes, unfinished_moves,
};
use crate::hive::consensus::logged_clock::LoggedClock;
use crate::hive::consensus::logs::{Logs, bees_move};
use crate::hive::consensus::quarantine::Waiting;
use crate::hive::consensus::registry::{LocalRegistry, Registry, RegistryState, Restored, colony_of};
use crate::hive::dispatch::inner::{AnyApp, Hive, HiveInner};
use crate::hive::dispatch::probe::Probe;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::LedLog;
use crate::hive::dispatch::types::message_types::{SameName, Types};
use crate::hive::dispatch::workers::Workers;
use crate::hive::edge::io_bee::Io;
use crate::hive::fingerprint::Describe;
use crate::hive::following;
use crate::hive::joining;
use crate::hive::leading;
use crate::hive::links::links::Links;
use crate::hive::links::network::Membership;
use crate::hive::message::dead_letters::DeadLetters;
use crate::hive::message::inbox::IoBees;
use crate::hive::ownership::reconciler::Reconciler;
use crate::hive::registration::{Registrar, Seal, Start};
use crate::hive::route::arrivals::Arrivals;
use crate::hive::route::delivery::give_back;
use crate::hive::route::recovery;
use crate::hive::run::log_events;
use crate::hive::scheduling::{maintenance, watchdog};
use crate::hive::start_error::StartError;
use crate::hive::sweep::ticks;
use crate::hive::{Restart, settings};
use crate::message::Error;
use crate::mutant::{Mutant, Mutation};
use crate::seams::{Platform, TokioPlatform};
use crate::state::{ConfigError, ConfigSource};
use crate::view::Source;
use crate::{limits, panics};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// A function that starts an IO bee when the hive starts.
type StartIo = Box<dyn FnOnce(&Hive)>;
/// A function that installs an app.
type Install = Box<dyn FnOnce(&mut Installing) -> Result<(), StartError>>;

/// The state collected while the apps are being installed.
struct Installing<'a> {
    hive: &'a Arc<HiveInner>,
    /// The seed for cell ids.
    seed: u64,
    /// The settings of the app to be installed next.
    settings: toml::Table,
    /// The settings that must be written to the apps' logs.
    new_settings: Vec<(AppId, LoggedSettings)>,
    registry: Arc<dyn Registry>,
    /// The logs.
    logs: &'a [LedLog],
    /// For each app, the positions of its logs in `logs`, starting with its home log; empty if the app's
    /// state is in memory only.
    of_apps: Vec<Vec<usize>>,
    /// The installed apps, in the order in which they were added.
    apps: Vec<Arc<AppRuntime>>,
    /// Actions to run once all apps are installed.
    seal: Vec<Seal>,
    /// Actions to run once the apps are restored. They start the timers.
    start: Vec<Start>,
    /// Whether views are published only when time advances; for tests.
    views_by_moment: bool,
    /// Whether the host tells the hive what all colonies have committed.
    follows: bool,
    /// The shapes of the apps' dictionaries, if there is a log.
    shapes: Vec<AppShapes>,
}

/// The configuration of a hive: its apps, their settings, and the platform that it runs on.
#[derive(Default)]
pub struct Builder {
    /// Each app's name, the place of its declaration, and the function that installs it.
    apps: Vec<((&'static str, &'static str), Install)>,
    /// For each app, the functions that describe it.
    described: Vec<Describe>,
    settings: toml::Table,
    platform: Option<Arc<dyn Platform>>,
    registry: Option<Arc<dyn Registry>>,
    seed: Option<u64>,
    id: HiveId,
    credits: Option<u32>,
    stuck_after: Option<Duration>,
    verify_maps: Option<u32>,
    logs: AppLogs,
    views_by_moment: bool,
    io: Vec<StartIo>,
    probe: Option<Arc<dyn Probe>>,
    mutation: Mutation,
    membership: Option<Membership>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let apps: Vec<&str> = self.apps.iter().map(|((name, _), _)| *name).collect();
        f.debug_struct("Builder").field("id", &self.id).field("apps", &apps).finish_non_exhaustive()
    }
}

impl Builder {
    /// Adds an app. If several apps can answer a message, they get it in the order in which they were
    /// added.
    pub fn app<A: Handlers>(mut self) -> Self {
        if let Some(durability) = A::OPTIONS.durability {
            self.logs.declare(A::NAME, durability)
        }
        self.apps.push(((A::NAME, A::PLACE), Box::new(|installing| installing.install::<A>())));
        self.described.push(Describe::of::<A>());
        self
    }

    /// Returns bytes that are the same on all hives with the same apps, in the same order, whose handlers handle the same
    /// messages and whose dictionaries have the same names and shapes. Hives of a cluster compare them before they talk to each
    /// other. What messages contain is not compared.
    pub fn fingerprint(&self) -> Vec<u8> {
        self.described.iter().flat_map(|describe| (describe.text)(&self.settings).into_bytes()).collect()
    }

    /// Returns the shapes of the apps' dictionaries and messages. A log that they cannot [read](Shapes::read) is refused when the
    /// hive starts; a program may ask before.
    ///
    /// # Errors
    ///
    /// Returns an error if an app rejects its settings.
    pub fn shapes(&self) -> Result<Shapes, StartError> {
        let types = Types::new(Arc::new(IoBees::numbered_from(0)));
        let apps: Result<_, ConfigError> =
            self.described.iter().map(|describe| (describe.shapes)(&self.settings, &types)).collect();
        Ok(Shapes { apps: apps?, messages: types.shapes(), names: types.logged.names() })
    }

    /// Sets the apps' settings: the table `apps` of a configuration, by app name.
    pub fn settings(mut self, apps: toml::Table) -> Self {
        self.settings = apps;
        self
    }

    /// Sets the platform on which the hive runs. The default is the tokio runtime in which the hive is
    /// started.
    pub fn platform(mut self, platform: Arc<dyn Platform>) -> Self {
        self.platform = Some(platform);
        self
    }

    /// Sets the registry, which decides for all apps which bee owns a cell. By default, the hive decides this
    /// alone.
    ///
    /// The registry must know a colony for each of the hive's logs, in order, beginning with the colony with id 1. If
    /// the hive keeps the bees of an app in memory only, the registry must know one more colony, which comes after those
    /// of the logs.
    ///
    /// The registry may outlive the hive. The next hive tells it which of its bees no log contains: they have ended.
    pub fn registry(mut self, registry: Arc<dyn Registry>) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Makes the hive a member of a cluster. Its bees exchange messages with those of the other hives, and a request
    /// is answered by the hive that owns the cells.
    ///
    /// All hives of a cluster have the same apps in the same order, the same [`seed`](Builder::seed), and replicas of the
    /// same [`registry`](Builder::registry). The registry must know that this hive has joined and that it leads its colonies,
    /// one for each of its logs. Every app needs a log.
    ///
    /// The documentation of [`cluster`](crate::cluster) says what a cluster does not do yet.
    pub fn cluster(mut self, membership: Membership) -> Self {
        self.membership = Some(membership);
        self
    }

    /// Sets the cluster's seed for cell ids. By default it is random, so that no outside sender can choose
    /// which cell it hits.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the number of the hive in its cluster.
    pub fn id(mut self, id: HiveId) -> Self {
        self.id = id;
        self
    }

    /// Sets the maximum number of messages in flight that entered through the [`Hive`] itself. A message that its
    /// handler has postponed, or that waits as a timer, does not count.
    ///
    /// Message types that are handled by apps with different logs are counted apart, so that a log that cannot commit holds up
    /// only the messages that depend on it.
    ///
    /// With 0, the hive accepts no such message: [`Hive::try_emit`] fails, requests end with
    /// [`RequestError::Overloaded`](crate::RequestError::Overloaded), and [`Hive::emit`] waits forever. Use this to test
    /// how a program behaves under overload.
    pub fn credits(mut self, credits: u32) -> Self {
        self.credits = Some(credits);
        self
    }

    /// Sets how long a message may run before the hive logs it and lists it in [`Hive::status`]. The default
    /// is [`limits::STUCK_AFTER`]. The handler is not interrupted. Messages to its cells wait, while other
    /// cells continue. Values below about ten milliseconds have the same effect as ten, because the watchdog
    /// does not examine shorter runs.
    pub fn stuck_after(mut self, time: Duration) -> Self {
        self.stuck_after = Some(time);
        self
    }

    /// Sets how often the hive verifies derived maps. The hive runs the handler for one in `every` of the
    /// messages that the handler's map drops, on an instance without state, and undoes everything that the
    /// handler does. If the handler does anything, the message becomes a dead letter with the error kind
    /// [`Unmapped`](crate::ErrorKind::Unmapped), and from then on the hive verifies every message dropped by
    /// this map. 0 turns verification off.
    ///
    /// The default is 1 (every message) in a build with debug assertions and in the test kit, and
    /// [`limits::DROPS_PER_VERIFICATION`] otherwise. If a handler writes to the console before it finds that
    /// it has nothing to do, it also does so for verified messages. Messages that a map does not drop need no
    /// verification, because their handlers run and the runtime checks each access.
    pub fn verify_maps(mut self, every: u32) -> Self {
        self.verify_maps = Some(every);
        self
    }

    /// Writes the records of all apps to `journal`, except for apps named in [`Builder::journal_of`] or
    /// [`Builder::in_memory`]. The journal continues from `colony`: the hive restores the state in `colony`,
    /// and resends messages that were emitted but not handled. The apps, their order, their assignment to
    /// logs, and the seed must be the same as when the log was written.
    pub fn journal(self, journal: Arc<dyn Journal>, colony: LogState) -> Self {
        self.journals([(journal, colony)])
    }

    /// Spreads the bees of all apps over several logs, except for apps named in [`Builder::journal_of`] or
    /// [`Builder::in_memory`]. Each bee is in one of these logs. Its first cell determines which one, and the
    /// bee may later move to another. Everything that belongs to no bee, such as a sweep or a stateless handler, is in the
    /// first log. Replaces the log of [`Builder::journal`].
    ///
    /// The logs commit independently of one another. While one of them cannot commit, the bees of the
    /// others continue. If the cells of a message have owners in several logs, the hive moves these owners
    /// to one log before it merges them; the message waits until all of these logs commit. [`Builder::journal`]
    /// says what must be the same as when the logs were written. Logs may be added behind the others, but none may be removed.
    /// Each log says which number it has among all logs of the hive, in the order of the builder's calls, and a start that gives
    /// it another number, or fewer logs, is refused. So call this after [`Builder::journal_of`] if you may add logs one day.
    pub fn journals(mut self, logs: impl IntoIterator<Item = (Arc<dyn Journal>, LogState)>) -> Self {
        self.logs.add_default(logs);
        self
    }

    /// Writes the records of these apps to a separate log, as [`Builder::journal`] does for all other apps.
    /// `apps` contains the names of the apps. The logs commit independently of one another. While one of
    /// them cannot commit, the apps of the others continue.
    ///
    /// An app keeps its log as long as it has bees there, or messages of its stateless handlers or sweeps that are not handled.
    /// A start that gives it another log before that is refused.
    pub fn journal_of(
        mut self,
        apps: impl IntoIterator<Item = impl Into<String>>,
        journal: Arc<dyn Journal>,
        colony: LogState,
    ) -> Self {
        self.logs.add_of(apps, [(journal, colony)]);
        self
    }

    /// Keeps the state of these apps in memory only, although the hive has a journal. These apps do not pay
    /// for the journal, and lose their state, their timers and their unhandled messages when the process
    /// ends. `apps` contains the names of the apps. An app may also declare this itself, with
    /// `#[app(durability = "memory")]`.
    pub fn in_memory(mut self, apps: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.logs.keep_in_memory(apps);
        self
    }

    /// Sets the durability of apps that declare none with `#[app(durability = "..")]`, and are named neither in
    /// [`Builder::journal_of`] nor in [`Builder::in_memory`]. The default is [`Durability::Disk`]: these apps use the hive's
    /// journal, if it has one.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.logs.durability = durability;
        self
    }

    /// Attaches a probe, which replaces any earlier one.
    #[cfg(feature = "testing")]
    pub(crate) fn probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Breaks a rule of the protocol, to test the checkers. Hives without a journal keep no such rule.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn mutant(mut self, mutant: Option<Mutant>) -> Self {
        self.mutation = Mutation::of(mutant);
        self
    }

    /// Publishes views only when time advances or [`HiveInner::publish_views`] is called, so the content of
    /// views does not depend on how cells are distributed among bees.
    #[cfg(feature = "testing")]
    pub(crate) fn views_by_moment(mut self) -> Self {
        self.views_by_moment = true;
        self
    }

    /// Starts an IO bee with this name when the hive starts, and restarts it according to `restart` (see
    /// [`Hive::spawn_io`]). Every hive with this configuration starts its own IO bee.
    pub fn io<F, Fut>(mut self, name: impl Into<String>, restart: Restart, make: F) -> Self
    where
        F: Fn(Io) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let name = name.into();
        self.io.push(Box::new(move |hive| hive.spawn_io(name, restart, make)));
        self
    }

    /// Starts the hive on its own runtime with `workers` threads. For programs that have no runtime, or whose
    /// runtime handlers must not hold up. The new runtime ends when the hive has stopped and its last handle
    /// is dropped.
    ///
    /// Such programs use [`Hive::request_blocking`] and [`Hive::stop_blocking`].
    pub fn start_on_own_runtime(self, workers: usize) -> Result<Hive, StartError> {
        let platform = TokioPlatform::with_a_runtime_of_its_own(workers)
            .map_err(|error| StartError::Runtime { why: error.to_string() })?;
        self.platform(Arc::new(platform)).start()
    }

    /// Starts the hive on the given platform, or, if there is none, on the current tokio runtime, which may
    /// have any flavor.
    ///
    /// The first hive in a process wraps the panic hook so that a panic in a derived map prints nothing. The
    /// message then goes to its handler, and if the handler panics as well, that panic is reported.
    pub fn start(self) -> Result<Hive, StartError> {
        panics::keep_maps_quiet();
        for (at, ((app, place), _)) in self.apps.iter().enumerate() {
            if let Some(((_, other), _)) = self.apps[..at].iter().find(|((other, _), _)| other == app) {
                return Err(StartError::SameName { app, places: [other, place] });
            }
        }

        let names: Vec<_> = self.apps.iter().map(|((name, _), _)| *name).collect();
        let tables = settings::by_app(self.settings, &names)?;
        let platform = match self.platform {
            Some(platform) => platform,
            None => {
                let runtime = tokio::runtime::Handle::try_current().map_err(|_| StartError::NoRuntime)?;
                Arc::new(TokioPlatform::new(runtime))
            }
        };

        let verify_all = cfg!(debug_assertions) || self.probe.is_some();
        let io = Arc::new(IoBees::numbered_from(platform.random() >> 1));
        let seed = self.seed.unwrap_or_else(|| platform.random());
        let of_apps = self.logs.of(&names)?;
        let mut logs = self.logs.logs;
        let mut first = match self.membership {
            None => unfinished_moves(&logs.iter().map(|(_, state)| state).collect::<Vec<_>>()),
            // the registry decides
            Some(_) => Vec::new(),
        };
        for (log, record) in &first {
            if let Some((_, state)) = logs.get_mut(*log) {
                state.carry_out(record)
            }
        }
        // in a cluster, each sweep has a number of its own from the beginning
        if self.membership.is_none() && bees_move(false, &of_apps) {
            let mut states: Vec<_> = logs.iter_mut().map(|(_, state)| state).collect();
            first.extend(number_begun(&mut states, &of_apps))
        }

        let is_registry_own = self.registry.is_some() && self.membership.is_none();
        let registry = match self.registry {
            Some(registry) => registry,
            None => Arc::new(LocalRegistry::restored(registry_of(&logs, self.mutation)?)),
        };
        if let Some(membership) = &self.membership {
            let mut checked = Ok(());
            registry.read(&mut |view| checked = joining::check(self.id, membership, &logs, &of_apps, view));
            checked?
        }
        let links = self
            .membership
            .as_ref()
            .map(|membership| Links::new(membership, registry.clone(), platform.clone(), self.mutation));
        let started = platform.now();
        let clock = LoggedClock::start(started, logs.iter().map(|(_, state)| state.now));

        let led = (!logs.is_empty()).then(|| {
            let of_cluster = self.membership.as_ref();
            let of_cluster = of_cluster.map(|membership| {
                ((self.id, membership.incarnation), &membership.colonies[..], membership.lane)
            });
            Logs::new(&logs, of_apps.clone(), clock.at(started), of_cluster, self.mutation)
        });
        let hive = Arc::new(HiveInner {
            id: self.id,
            instance: crate::hive::dispatch::inner::next_instance(),
            types: Types::new(io.clone()),
            io,
            timers: TimerWheel::default(),
            stuck: Mutex::default(),
            dead_letters: DeadLetters::default(),
            entrances: Entrances::new(
                self.credits.unwrap_or(limits::CREDITS_PER_IO_BEE),
                led.as_ref().map(|logs| logs.lanes.clone()),
            ),
            queue: SenderQueue::shared(),
            links,
            reconciler: OnceLock::new(),
            logs: led,
            probe: self.probe,
            apps: RwLock::default(),
            workers: Workers::new(platform.workers()),
            stuck_after: self.stuck_after.unwrap_or(limits::STUCK_AFTER),
            verify_maps: self.verify_maps.unwrap_or(if verify_all {
                1
            } else {
                limits::DROPS_PER_VERIFICATION
            }),
            in_flight: Arc::default(),
            stopped: AtomicBool::new(false),
            over: AtomicBool::new(false),
            stopping: Notify::new(),
            ended: Notify::new(),
            stop_done: Notify::new(),
            stop_is_complete: AtomicBool::new(false),
            report: Mutex::new(None),
            tasks: AtomicUsize::new(0),
            tasks_done: Notify::new(),
            upcoming: Default::default(),
            emits: Mutex::default(),
            unhandled: Mutex::new(BTreeSet::new()),
            cycles: AtomicU64::new(0),
            last_now: Default::default(),
            clock,
            started,
            platform,
        });

        if let Some(probe) = hive.probe() {
            probe.starting()
        }
        hive.log_clients().iter().for_each(|link| log_events::attach(link, &hive));
        let states = logs.into_iter().map(|(_, state)| state);
        let mut logs: Vec<LedLog> = hive.log_clients().into_iter().zip(states).collect();
        let goes_on =
            logs.iter().any(|(_, state)| state.last.in_term() > 0 || state.shapes != Shapes::default());
        let mut installing = Installing {
            hive: &hive,
            seed,
            settings: toml::Table::new(),
            new_settings: Vec::new(),
            registry: registry.clone(),
            logs: &logs,
            of_apps,
            apps: Vec::new(),
            seal: Vec::new(),
            start: Vec::new(),
            views_by_moment: self.views_by_moment,
            follows: self.membership.as_ref().is_some_and(|membership| membership.follows),
            shapes: Vec::new(),
        };

        for ((_, install), table) in self.apps.into_iter().zip(tables) {
            installing.settings = table;
            install(&mut installing)?;
        }

        let Installing { apps, of_apps, seal, start, shapes, new_settings, .. } = installing;
        if let Some(SameName { name: message, places }) = hive.types.take_clash() {
            return Err(StartError::SameMessageName { message, places });
        }

        if let Some(messages) = hive.types.logged.take_same_number() {
            return Err(StartError::SameMessageNumber { messages });
        }

        let shapes = leading::shapes(&hive, shapes);
        let misread = |why: String| StartError::Log { why };
        leading::check_places(&logs).map_err(misread)?;
        logs.iter().try_for_each(|(_, state)| shapes.read(state)).map_err(misread)?;

        *hive.apps.write() = apps.iter().map(|app| app.clone() as Arc<dyn AnyApp>).collect();
        seal.into_iter().for_each(|seal| seal(&hive.types));

        let is_in = |app: AppId, log: usize| of_apps.get(app.index()).is_some_and(|logs| logs.contains(&log));
        let mut bees =
            logs.iter().flat_map(|(link, state)| state.bees.keys().map(|(app, _)| (link.position(), *app)));
        if let Some((_, app)) = bees.find(|(log, app)| !is_in(*app, *log)) {
            return Err(StartError::Log { why: bees_of_no_app(app, &hive.apps.read()) });
        }
        if hive.links.is_none() {
            let states: Vec<&LogState> = logs.iter().map(|(_, state)| state).collect();
            former_homes::check(&states, &of_apps, &names).map_err(misread)?
        }
        recovery::check(&hive, logs.iter().map(|(_, state)| state))
            .map_err(|error| misread(error.to_string()))?;

        logs.iter().for_each(|(link, state)| following::show(&apps, link.colony(), state, &hive));
        let mut compared = leading::compare(&hive, &mut logs);
        let first = first.into_iter().filter_map(|(log, record)| Some((hive.log_at(log)?, record)));
        compared.unsaid.extend(first);
        let mut restored = leading::restore(&hive, &apps, &mut logs, &mut compared);
        restored.show().map_err(|error| misread(error.to_string()))?;

        // a start that is refused has changed nothing; from here on, none is
        for link in &hive.log_clients() {
            link.begin().map_err(|error| StartError::Journal { why: error.to_string() })?
        }
        if let Some(logs) = &hive.logs {
            drop(logs.quarantine.begin_life(&logs.clients().all()))
        }
        if is_registry_own {
            apps.iter().for_each(|app| app.end_unknown(restored.of_app(app.index), &hive))
        }
        following::begin(&apps, &registry, &hive);
        let reconciler = hive.links.as_ref().map(|links| Reconciler::new(&hive, links, apps));
        leading::go_on(&hive, &logs, (compared, restored), &shapes)
            .map_err(|error| StartError::Log { why: error.to_string() })?;
        if hive.logs.is_some() {
            settings::settle(&hive, new_settings, goes_on)
        }

        warn_of_replication(&hive.apps.read());
        start.into_iter().for_each(|start| start(&hive));
        // a runtime that shuts down while the hive is running drops this task, and then waits for its threads
        let waiting = hive.logs.as_ref().map(|logs| Waiting(logs.quarantine.clone()));
        let ticks = ticks::run(hive.clone());
        hive.platform.spawn(Box::pin(async move {
            let _waiting = waiting;
            ticks.await
        }));
        hive.platform.spawn(Box::pin(maintenance::maintain(hive.clone())));

        let watched = Arc::downgrade(&hive);
        hive.platform.spawn_thread("beehive-threads", Box::new(move || watchdog::relieve(watched)));

        if let Some(links) = &hive.links {
            links.begin(Arrivals::new(&hive))
        }
        if let Some(reconciler) = reconciler {
            hive.platform.spawn(Box::pin(reconciler.run()))
        }
        let hive = Hive(hive);
        self.io.into_iter().for_each(|start| start(&hive));
        Ok(hive)
    }
}

impl Installing<'_> {
    /// Returns the states of an app's logs, starting with its home log, or none if the app's state is in
    /// memory only.
    fn states_of(&self, app: u16) -> impl Iterator<Item = &LogState> {
        let positions = self.of_apps.get(usize::from(app)).into_iter().flatten();
        positions.filter_map(|log| self.logs.get(*log)).map(|(_, state)| state)
    }

    /// Returns an app's settings version: the logged version if the log contains the same settings, otherwise
    /// the next one.
    fn settings_version<A: Handlers>(&mut self, app: u16, table: &toml::Table) -> Result<u32, ConfigError> {
        let Some(state) = self.states_of(app).next().filter(|_| A::HAS_SETTINGS) else { return Ok(1) };
        let logged = state.settings.get(&AppId(app));

        let table = crate::hive::bee::settings::text(A::NAME, table)?;
        let version = match logged {
            Some(logged) if logged.table == table => return Ok(logged.version),
            Some(logged) => logged.version + 1,
            None => 1,
        };

        self.new_settings.push((AppId(app), LoggedSettings { version, table }));
        Ok(version)
    }

    /// Creates an app's runtime state, registers the app's handlers, and collects the actions to run once
    /// all apps are installed.
    fn install<A: Handlers>(&mut self) -> Result<(), StartError> {
        if let Some(key) = same_key_name(A::DICTS) {
            return Err(StartError::SameKeyName { app: A::NAME, key });
        }

        let table = std::mem::take(&mut self.settings);
        let prototype = A::configured(&ConfigSource::new(A::NAME, table.clone()))?;
        let index = self.apps.len() as u16;
        let version = self.settings_version::<A>(index, &table)?;

        let links = self.hive.logs_of(AppId(index));
        let is_logged = !links.is_empty();
        let led = self.hive.logs.as_ref().filter(|_| self.hive.links.is_some());
        let links = (links, led.map(|logs| logs.clients().clone()));
        let registry = (self.registry.clone(), colony_of(self.logs.len()));
        let views_from = Source { by_moment: self.views_by_moment, follows: self.follows && is_logged };
        let rest = (views_from, give_back as GiveBack);
        let runtime = AppRuntime::new((index, self.seed), prototype, (table, version), registry, links, rest);

        let mut dictionaries = Vec::new();
        if self.hive.logs.is_some() {
            dictionaries = runtime.fresh().shapes();
        }
        if is_logged {
            let is_kept = |name: &str| A::DICTS.iter().any(|dict| dict.name == name && !dict.volatile);
            let unreadable = dictionaries.iter().find(|(name, shape)| is_kept(name) && !shape.is_readable());
            if let Some((dictionary, shape)) = unreadable.cloned() {
                return Err(StartError::Unreadable { app: A::NAME, dictionary, shape });
            }
        }
        self.shapes.push(AppShapes { name: A::NAME.to_string(), dictionaries });

        let mut registrar = Registrar::new(&self.hive.types, &runtime);
        A::register(&mut registrar);
        if let Some((message, place)) = registrar.result_reply() {
            return Err(StartError::ResultReply { app: A::NAME, message, place });
        }
        if let Some(message) = registrar.begins_sweep()
            && self.hive.links.is_some()
        {
            // the sweep would miss the cells of the other hives
            let why = format!(
                "a message `{message}` visits all cells of a dictionary of `{}`, but not those of other hives yet; use a \
                 timer (`#[every(.., each = ..)]`)",
                A::NAME
            );
            return Err(StartError::Cluster { why });
        }
        let (swept, seal, start) = registrar.finish();

        runtime.set_swept(swept);
        self.seal.extend(seal);
        self.start.extend(start);
        self.apps.push(runtime);
        Ok(())
    }
}

/// Returns the registry of a hive that continues these logs and decides alone.
fn registry_of(
    logs: &[(Arc<dyn Journal>, LogState)],
    mutation: Mutation,
) -> Result<RegistryState, StartError> {
    let states = logs.iter().enumerate().map(|(at, (_, state))| (colony_of(at), state));
    let bees = states.flat_map(|(colony, state)| {
        state.bees.iter().map(move |((app, bee), image)| Restored {
            bee: *bee,
            app: *app,
            colony,
            epoch: image.epoch,
            lanes: image.heir_of.iter().copied().collect(),
            cells: image.cells.iter().copied().collect(),
        })
    });
    let bees: Vec<Restored> = bees.collect();
    let mut app_of = BTreeMap::new();
    for Restored { bee, app, .. } in &bees {
        if let Some(other) = app_of.insert(*bee, *app).filter(|other| other != app) {
            let (one, two) = (other.0.min(app.0), other.0.max(app.0));
            let why = format!(
                "the apps number {one} and {two} both have {bee}; an early version wrote such logs, which this one \
                 cannot continue"
            );
            return Err(StartError::Log { why });
        }
    }

    // an id that has never been in a log is free, even if an earlier process assigned it
    let newest = logs.iter().flat_map(|(_, state)| state.newest.values()).max();
    let newest = newest.filter(|_| !mutation.breaks(Mutant::IdReused)).map_or(0, |bee| bee.0);
    // the last colony is that of the bees in memory
    Ok(RegistryState::alone(logs.len() as u32 + 1, bees, newest))
}

/// Describes a mismatch: a log contains bees of an app that no longer writes to it.
fn bees_of_no_app(app: AppId, apps: &[Arc<dyn AnyApp>]) -> String {
    match apps.get(app.index()) {
        Some(known) => format!(
            "it contains bees of the app `{}`, which now has another log or none; give the app the log that it had",
            known.name()
        ),
        None => format!("it contains bees of app number {}, but the hive has no such app", app.0),
    }
}

/// Logs one warning that no app is replicated, if any app requests replication.
fn warn_of_replication(apps: &[Arc<dyn AnyApp>]) {
    let asked: Vec<String> = apps
        .iter()
        .filter(|app| app.replication_asked() > COPIES)
        .map(|app| format!("{} (replication = {})", app.name(), app.replication_asked()))
        .collect();

    if !asked.is_empty() {
        tracing::warn!(
            apps = asked.join(", "),
            "apps ask for replication, but this hive runs alone: it keeps {COPIES} copy of their state"
        );
    }
}

/// Returns a name shared by two different key types, if there is one. The hive would treat the dictionaries
/// of such types as columns of the same cell.
fn same_key_name(dicts: &[crate::mapper::DictInfo]) -> Option<&'static str> {
    dicts.iter().enumerate().find_map(|(at, d)| {
        let clash = dicts[..at].iter().any(|o| o.group_seed == d.group_seed && o.key_type != d.key_type);
        clash.then_some(d.key)
    })
}
