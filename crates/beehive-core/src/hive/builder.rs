//! Configures and starts a hive.

use crate::app::{COPIES, Handlers};
use crate::cell::{BeeId, HiveId};
use crate::hive::admission::credits::Credits;
use crate::hive::admission::timer_wheel::TimerWheel;
use crate::hive::app_logs::AppLogs;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::settings::Settings;
use crate::hive::consensus::journal::{
    AppId, AppShapes, BeeImage, EntryNumber, Journal, LaneId, LogState, LoggedSettings, Record, Shapes,
    unfinished_moves,
};
use crate::hive::consensus::logs::Logs;
use crate::hive::consensus::registry::{LocalRegistry, Ownership, Registry};
use crate::hive::dispatch::inner::{AnyApp, Hive, HiveInner};
use crate::hive::dispatch::message_types::{SameName, Types};
use crate::hive::dispatch::probe::Probe;
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::Link;
use crate::hive::dispatch::workers::Workers;
use crate::hive::edge::io_bee::Io;
use crate::hive::message::dead_letters::DeadLetters;
use crate::hive::message::inbox::IoBees;
use crate::hive::registration::{Registrar, Seal, Start};
use crate::hive::route::recovery;
use crate::hive::route::recovery::SenderQueues;
use crate::hive::run::log_events;
use crate::hive::scheduling::{maintenance, watchdog};
use crate::hive::start_error::StartError;
use crate::hive::sweep::ticks;
use crate::hive::{Restart, settings};
use crate::message::Error;
use crate::seams::{Platform, TokioPlatform};
use crate::state::column::Columns;
use crate::state::{ConfigError, ConfigSource, DecodeError};
use crate::{limits, panics};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;
use tokio::sync::Notify;

/// Starts an IO bee when the hive starts.
type StartIo = Box<dyn FnOnce(&Hive)>;
/// Creates the registry of the app with this name.
type MakeRegistry = Box<dyn Fn(&'static str) -> Arc<dyn Registry>>;
/// The bees that a log contains.
type Bees = BTreeMap<(AppId, BeeId), BeeImage>;
/// Removes the bees of one app from the bees of a log, and restores them.
type Restore = Box<dyn Fn(&mut Bees, &Arc<Link>, &mut SenderQueues) -> Result<(), DecodeError>>;
/// Installs an app.
type Install = Box<dyn FnOnce(&mut Installing) -> Result<(), StartError>>;

/// The state that is collected while apps are installed.
struct Installing<'a> {
    hive: &'a Arc<HiveInner>,
    /// The seed of the cell ids.
    seed: u64,
    /// The settings of the app that is installed next.
    settings: toml::Table,
    /// Settings that must be written to the apps' logs.
    new_settings: Vec<(AppId, LoggedSettings)>,
    registry: Option<MakeRegistry>,
    /// The logs.
    logs: &'a [(Arc<dyn Journal>, LogState)],
    /// For each app, the positions of its logs in `logs`, its home first; none if its state is in memory only.
    of_apps: Vec<Vec<usize>>,
    /// Restores each app's bees from the log at a position, in the order of the apps.
    restore: Vec<(Vec<usize>, Restore)>,
    /// The apps that are installed, in the order in which they were added.
    apps: Vec<Arc<dyn AnyApp>>,
    /// Actions to run when all apps are installed.
    seal: Vec<Seal>,
    /// Actions to run when the apps are restored: they start the timers.
    start: Vec<Start>,
    /// Whether views are published only when time advances; for tests.
    views_by_moment: bool,
    /// Shapes of the apps' dictionaries, if there is a log.
    shapes: Vec<AppShapes>,
}

/// Configuration of a hive: its apps, their settings, and what it runs on.
#[derive(Default)]
pub struct Builder {
    /// Each app's name and where it is declared, with the function that installs it.
    apps: Vec<((&'static str, &'static str), Install)>,
    settings: toml::Table,
    platform: Option<Arc<dyn Platform>>,
    registry: Option<MakeRegistry>,
    seed: Option<u64>,
    id: HiveId,
    credits: Option<u32>,
    stuck_after: Option<Duration>,
    verify_maps: Option<u32>,
    logs: AppLogs,
    views_by_moment: bool,
    io: Vec<StartIo>,
    probe: Option<Arc<dyn Probe>>,
}

impl Builder {
    /// Adds an app. If several apps can answer a message, they are asked in the order in which they were
    /// added.
    pub fn app<A: Handlers>(mut self) -> Self {
        self.apps.push(((A::NAME, A::PLACE), Box::new(|installing| installing.install::<A>())));
        self
    }

    /// Sets the apps' settings: the table `apps` of a configuration, by app name.
    pub fn settings(mut self, apps: toml::Table) -> Self {
        self.settings = apps;
        self
    }

    /// Sets the platform that the hive runs on. The default is the tokio runtime in which it is started.
    pub fn platform(mut self, platform: Arc<dyn Platform>) -> Self {
        self.platform = Some(platform);
        self
    }

    /// Sets the function that makes the registry of each app. By default the hive decides alone.
    pub fn registry(mut self, make: impl Fn(&'static str) -> Arc<dyn Registry> + 'static) -> Self {
        self.registry = Some(Box::new(make));
        self
    }

    /// Sets the cluster's seed for cell ids. By default it is random, so that no sender outside can choose
    /// a cell.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the number of the hive in its cluster.
    pub fn id(mut self, id: HiveId) -> Self {
        self.id = id;
        self
    }

    /// Sets the number of messages that may be in flight from callers that use the [`Hive`] itself.
    pub fn credits(mut self, credits: u32) -> Self {
        self.credits = Some(credits);
        self
    }

    /// Sets the time after which a running message is logged and listed in [`Hive::status`]. The default is
    /// [`limits::STUCK_AFTER`]. The handler is not interrupted; its cells wait, and others go on. Values
    /// below ten milliseconds are raised to ten.
    pub fn stuck_after(mut self, time: Duration) -> Self {
        self.stuck_after = Some(time);
        self
    }

    /// Sets how often the hive verifies derived maps: one of `every` messages that the map of a handler drops
    /// is given to the handler, on an instance without state, and everything that the handler does is undone.
    /// If it does anything, the message ends with an error of the kind
    /// [`Unmapped`](crate::ErrorKind::Unmapped), as a dead letter, and from then on all messages that this
    /// map drops are verified. 0 turns this off.
    ///
    /// The default is 1 (each message) in a build with debug assertions and in the test kit, and
    /// [`limits::DROPS_PER_VERIFICATION`] otherwise. A handler that writes to the console before it finds that
    /// it has nothing to do writes it for verified messages, too. Messages that a map does not drop need no
    /// verification: their handlers run, and the runtime checks each access.
    pub fn verify_maps(mut self, every: u32) -> Self {
        self.verify_maps = Some(every);
        self
    }

    /// Writes the records of all apps to `journal`, except of those that [`Builder::journal_of`] and
    /// [`Builder::in_memory`] name. The journal continues at `colony`: the hive restores the state in it, and
    /// resends messages that were emitted and not handled. The apps, their order, which of them share a log, and the
    /// seed must be the same as in the log.
    pub fn journal(self, journal: Arc<dyn Journal>, colony: LogState) -> Self {
        self.journals([(journal, colony)])
    }

    /// Spreads the bees of all apps over several logs, except of those apps that [`Builder::journal_of`] and
    /// [`Builder::in_memory`] name. A bee is in one of them, which its first cell decides, until it moves to another. What
    /// belongs to no bee, such as a sweep, is in the first one.
    ///
    /// The logs commit independently of one another: while one of them cannot commit, the bees of the others go on. A
    /// message whose cells have owners in several logs moves these owners to one log before they merge. See
    /// [`Builder::journal`] for what must stay as it was when the logs were written; logs may be added, but none left out.
    pub fn journals(mut self, logs: impl IntoIterator<Item = (Arc<dyn Journal>, LogState)>) -> Self {
        self.logs.add_default(logs);
        self
    }

    /// Writes the records of these apps to a log of their own, as [`Builder::journal`] does for all others. `apps` are
    /// the names of apps. Several logs commit independently of one another: while one of them cannot commit, the apps
    /// of the others go on.
    pub fn journal_of(
        mut self,
        apps: impl IntoIterator<Item = impl Into<String>>,
        journal: Arc<dyn Journal>,
        colony: LogState,
    ) -> Self {
        self.logs.add_of(apps, [(journal, colony)]);
        self
    }

    /// Keeps the state of these apps in memory only, although the hive has a journal. They pay nothing for it, and lose
    /// their state, their timers and their unhandled messages when the process ends. `apps` are the names of apps.
    pub fn in_memory(mut self, apps: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.logs.keep_in_memory(apps);
        self
    }

    /// Attaches an observer, which replaces an earlier one.
    #[cfg(feature = "testing")]
    pub(crate) fn probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Publishes views only when time advances or [`HiveInner::publish_views`] is called, so that what
    /// handlers see does not depend on how cells are distributed.
    #[cfg(feature = "testing")]
    pub(crate) fn views_by_moment(mut self) -> Self {
        self.views_by_moment = true;
        self
    }

    /// Starts an IO bee under this name with the hive, and restarts it according to `restart`: see
    /// [`Hive::spawn_io`]. Every hive with this configuration starts its own IO bee.
    pub fn io<F, Fut>(mut self, name: impl Into<String>, restart: Restart, make: F) -> Self
    where
        F: Fn(Io) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let name = name.into();
        self.io.push(Box::new(move |hive| hive.spawn_io(name, restart, make)));
        self
    }

    /// Starts the hive on a runtime of its own with `workers` threads: for programs without a runtime, or
    /// whose runtime must not be held up by handlers. The runtime ends when the hive has stopped and its
    /// last handle is dropped.
    ///
    /// Such programs use [`Hive::request_blocking`] and [`Hive::stop_blocking`].
    pub fn start_on_own_runtime(self, workers: usize) -> Result<Hive, StartError> {
        let platform = TokioPlatform::with_a_runtime_of_its_own(workers)
            .map_err(|error| StartError::Runtime { why: error.to_string() })?;
        self.platform(Arc::new(platform)).start()
    }

    /// Starts the hive on the given platform, or else on the current tokio runtime of any flavor.
    ///
    /// The first hive of a process wraps the panic hook, so that a panic in a derived map prints nothing: the
    /// message then goes to its handler, and if the handler panics, too, that panic is reported.
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
        let moves = unfinished_moves(&logs.iter().map(|(_, state)| state).collect::<Vec<_>>());
        for (log, record) in &moves {
            if let Some((_, state)) = logs.get_mut(*log) {
                state.carry_out(record)
            }
        }

        let hive = Arc::new(HiveInner {
            id: self.id,
            instance: crate::hive::dispatch::inner::next_instance(),
            types: Types::new(io.clone()),
            io,
            timers: TimerWheel::default(),
            stuck: Mutex::default(),
            dead_letters: DeadLetters::default(),
            credits: Credits::new(self.credits.unwrap_or(limits::CREDITS_PER_IO_BEE)),
            queue: SenderQueue::shared(),
            logs: (!logs.is_empty()).then(|| Logs::new(&logs, of_apps.clone(), platform.random())),
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
            report: Mutex::new(None),
            tasks: AtomicUsize::new(0),
            tasks_done: Notify::new(),
            reconfiguring: Default::default(),
            emits: Mutex::default(),
            unhandled: Mutex::new(BTreeSet::new()),
            cycles: AtomicU64::new(0),
            last_now: Default::default(),
            started: platform.now(),
            platform,
        });

        if let Some(probe) = hive.probe() {
            probe.starting()
        }
        hive.log_clients().iter().for_each(|link| log_events::attach(link, &hive));

        let mut dead = recovery::dead_lanes(&logs);
        dead.extend(hive.logs.iter().flat_map(|clients| clients.restore_lanes(&logs)));
        let goes_on = logs.iter().any(|(_, state)| state.last > EntryNumber(0));
        let mut installing = Installing {
            hive: &hive,
            seed,
            settings: toml::Table::new(),
            new_settings: Vec::new(),
            registry: self.registry,
            logs: &logs,
            of_apps,
            restore: Vec::new(),
            apps: Vec::new(),
            seal: Vec::new(),
            start: Vec::new(),
            views_by_moment: self.views_by_moment,
            shapes: Vec::new(),
        };

        for ((_, install), table) in self.apps.into_iter().zip(tables) {
            installing.settings = table;
            install(&mut installing)?;
        }

        let Installing { apps, seal, start, restore, shapes, new_settings, .. } = installing;
        if let Some(SameName { name: message, places }) = hive.types.take_clash() {
            return Err(StartError::SameMessageName { message, places });
        }

        let shapes = Shapes { apps: shapes, messages: hive.types.shapes() };
        let misread = |why: String| StartError::Log { why };
        logs.iter().try_for_each(|(_, state)| shapes.read(state)).map_err(misread)?;

        let mut queues = SenderQueues::default();
        for (at, restore) in restore {
            for log in at {
                let (Some((_, state)), Some(link)) = (logs.get_mut(log), hive.log_clients().get(log)) else {
                    continue;
                };
                restore(&mut state.bees, link, &mut queues).map_err(|error| misread(error.to_string()))?
            }
        }

        *hive.apps.write() = apps;
        seal.into_iter().for_each(|seal| seal(&hive.types));

        if let Some(((app, _), _)) = logs.iter().find_map(|(_, state)| state.bees.first_key_value()) {
            return Err(StartError::Log { why: bees_of_no_app(*app, &hive.apps.read()) });
        }
        if let Some(logs) = &hive.logs {
            logs.quarantine.begin_life()
        }
        for (log, record) in moves {
            if let Some(link) = hive.log_clients().get(log) {
                drop(link.say(record))
            }
        }
        for (link, (_, state)) in hive.log_clients().iter().zip(&logs) {
            if shapes != state.shapes {
                // the shapes enter the log before any entry that is encoded with them
                drop(link.say(Record::Shapes(shapes.clone())))
            }
        }

        recovery::retire_lanes(&hive, dead);
        recovery::send_again(&hive, &logs, &mut queues)
            .map_err(|error| StartError::Log { why: error.to_string() })?;
        if hive.logs.is_some() {
            settings::settle(&hive, new_settings, goes_on)
        }

        warn_of_replication(&hive.apps.read());
        start.into_iter().for_each(|start| start(&hive));
        hive.platform.spawn(Box::pin(ticks::run(hive.clone())));
        hive.platform.spawn(Box::pin(maintenance::maintain(hive.clone())));

        let watched = Arc::downgrade(&hive);
        hive.platform.spawn_thread("beehive-threads", Box::new(move || watchdog::relieve(watched)));

        let hive = Hive(hive);
        self.io.into_iter().for_each(|start| start(&hive));
        Ok(hive)
    }
}

impl Installing<'_> {
    /// Returns the states of an app's logs, its home first; none if its state is in memory only.
    fn states_of(&self, app: u16) -> impl Iterator<Item = &LogState> {
        let positions = self.of_apps.get(usize::from(app)).into_iter().flatten();
        positions.filter_map(|log| self.logs.get(*log)).map(|(_, state)| state)
    }

    /// Returns the version of an app's settings: the logged one if the log has the same settings, or else
    /// the next.
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

    /// Creates an app's runtime, registers its handlers, and collects the actions to run after all apps are
    /// installed.
    fn install<A: Handlers>(&mut self) -> Result<(), StartError> {
        if let Some(key) = same_key_name(A::DICTS) {
            return Err(StartError::SameKeyName { app: A::NAME, key });
        }

        let table = std::mem::take(&mut self.settings);
        let prototype = A::configured(&ConfigSource::new(A::NAME, table.clone()))?;
        let index = self.apps.len() as u16;
        let version = self.settings_version::<A>(index, &table)?;
        let settings = Settings::new(prototype, table, version);

        let registry = match &self.registry {
            Some(make) => make(A::NAME),
            None => {
                let mine = self.states_of(index).flat_map(|state| {
                    state.bees.range((AppId(index), BeeId(0))..=(AppId(index), BeeId(u64::MAX)))
                });
                let owned = mine.map(|((_, bee), image)| (*bee, image.cells.iter().copied().collect()));
                // an id that the log has never contained is free, even if an earlier process has given it out
                let newest = self.states_of(index).filter_map(|state| state.newest.get(&AppId(index)));
                let newest = newest.max().map_or(0, |bee| bee.0);
                Arc::new(LocalRegistry::restored(Ownership::restored(owned, newest)))
            }
        };

        let by_moment = self.views_by_moment;
        let links = self.hive.logs_of(AppId(index));
        let is_logged = !links.is_empty();
        let runtime = AppRuntime::new(index, self.seed, settings, registry, links, by_moment);

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

        let restored = runtime.clone();
        let restore: Restore = Box::new(move |bees, log, queues| {
            bees.extract_if(.., |(app, _), _| app.0 == index).try_for_each(|((_, bee), image)| {
                let queue = queues.of_bee(LaneId::of_bee(AppId(index), bee), &image.heir_of);
                restored.restore(bee, (image, log), queue)
            })
        });
        self.restore.push((self.of_apps.get(usize::from(index)).cloned().unwrap_or_default(), restore));

        let mut registrar = Registrar::new(self.hive, &runtime);
        A::register(&mut registrar);
        let (swept, seal, start) = registrar.finish();

        runtime.set_swept(swept);
        self.seal.extend(seal);
        self.start.extend(start);
        self.apps.push(runtime);
        Ok(())
    }
}

/// Describes why a log does not fit: it contains bees of an app that does not write to it.
fn bees_of_no_app(app: AppId, apps: &[Arc<dyn AnyApp>]) -> String {
    match apps.get(app.index()) {
        Some(known) => format!(
            "it contains bees of the app `{}`, which now has another log or none; give the app the log that it had",
            known.name()
        ),
        None => format!("it contains bees of app number {}, but the hive has no such app", app.0),
    }
}

/// Logs one warning that no app is replicated, if any app asks for replication.
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

/// Returns the name of a derived key type that two different types use. Their dictionaries would be taken
/// for columns of one cell.
fn same_key_name(dicts: &[crate::mapper::DictInfo]) -> Option<&'static str> {
    dicts.iter().enumerate().find_map(|(at, d)| {
        let clash = dicts[..at].iter().any(|o| o.group_seed == d.group_seed && o.key_type != d.key_type);
        clash.then_some(d.key)
    })
}
