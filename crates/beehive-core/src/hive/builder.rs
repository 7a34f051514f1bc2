//! Building and starting a hive.

use crate::app::Handlers;
use crate::cell::{BeeId, HiveId};
use crate::hive::admission::lane_of;
use crate::hive::credit::Credits;
use crate::hive::dead_letters::DeadLetters;
use crate::hive::io::IoBees;
use crate::hive::journal::{BeeImage, Colony, Journal};
use crate::hive::lane::SenderLane;
use crate::hive::link::Link;
use crate::hive::recorder::Recorder;
use crate::hive::recovery::{self, SenderLanes};
use crate::hive::registrar::{Registrar, Seal, Start};
use crate::hive::registry::{LocalRegistry, Ownership, Registry};
use crate::hive::relief;
use crate::hive::runtime::AppRuntime;
use crate::hive::status::AnyApp;
use crate::hive::timers::{self, Timers};
use crate::hive::types::Types;
use crate::hive::workers::{self, Workers};
use crate::hive::{Hive, HiveInner};
use crate::limits;
use crate::seams::{Platform, TokioPlatform};
use crate::state::{ConfigError, ConfigSource};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use tokio::sync::Notify;

type MakeRegistry = Box<dyn Fn(&'static str) -> Arc<dyn Registry>>;
type Install = Box<dyn FnOnce(&mut Installing) -> Result<(), StartError>>;

/// What an app needs to be put into a hive that is being built.
struct Installing<'a> {
    hive: &'a Arc<HiveInner>,
    seed: u64,
    settings: toml::Table,
    registry: Option<MakeRegistry>,
    /// Number of the last entry of the log: no bee has a higher one.
    last: u64,
    /// To be restored.
    bees: BTreeMap<(u16, BeeId), BeeImage>,
    lanes: SenderLanes,
    apps: Vec<Arc<dyn AnyApp>>,
    seal: Vec<Seal>,
    start: Vec<Start>,
}

/// Settings of a hive, and its apps.
#[derive(Default)]
pub struct Builder {
    apps: Vec<(&'static str, Install)>,
    settings: toml::Table,
    platform: Option<Arc<dyn Platform>>,
    registry: Option<MakeRegistry>,
    seed: Option<u64>,
    id: HiveId,
    credits: Option<u32>,
    journal: Option<(Arc<dyn Journal>, Colony)>,
    recorder: Option<Arc<Recorder>>,
}

/// Why a hive did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// Two apps have the same name.
    SameName {
        /// The name.
        app: &'static str,
    },
    /// The configuration has a table for an app that is not there.
    UnknownApp {
        /// The table's name.
        table: String,
        /// The apps that are there.
        known: Vec<&'static str>,
    },
    /// An app refuses its settings.
    Settings(ConfigError),
    /// There is no tokio runtime to run on, and no other platform was given.
    NoRuntime,
    /// The log that it was to go on with is not that of these apps.
    Log {
        /// What does not fit.
        why: String,
    },
    /// Two dictionaries of an app have key types with the same name.
    SameKeyName {
        /// The app.
        app: &'static str,
        /// The name.
        key: &'static str,
    },
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::SameName { app } => {
                write!(f, "two apps are called `{app}`; give one another name with `#[app(name = \"..\")]`")
            }
            StartError::UnknownApp { table, known } => {
                write!(f, "[apps.{table}]: there is no such app; there are {}", known.join(", "))
            }
            StartError::Settings(error) => write!(f, "{error}"),
            StartError::NoRuntime => {
                write!(f, "no tokio runtime: start the hive from within one, or give the builder a platform")
            }
            StartError::Log { why } => write!(f, "the log does not fit these apps: {why}"),
            StartError::SameKeyName { app, key } => {
                write!(
                    f,
                    "app `{app}`: two key types are called `{key}`; give one another with `#[key(name = \"..\")]`"
                )
            }
        }
    }
}
impl std::error::Error for StartError {}
impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        StartError::Settings(error)
    }
}

impl Builder {
    /// Adds an app. The order of apps is that of the chain of those who can answer a message.
    pub fn app<A: Handlers>(mut self) -> Self {
        self.apps.push((A::NAME, Box::new(|installing| installing.install::<A>())));
        self
    }

    /// Settings of the apps: the table `apps` of a configuration, by name.
    pub fn settings(mut self, apps: toml::Table) -> Self {
        self.settings = apps;
        self
    }

    /// Runs on something other than the tokio runtime it is started in.
    pub fn platform(mut self, platform: Arc<dyn Platform>) -> Self {
        self.platform = Some(platform);
        self
    }

    /// Asks `make` for the registry of each app, instead of deciding alone.
    pub fn registry(mut self, make: impl Fn(&'static str) -> Arc<dyn Registry> + 'static) -> Self {
        self.registry = Some(Box::new(make));
        self
    }

    /// The cluster's seed for cell ids. Chosen by chance otherwise, so that nobody outside can aim at a cell.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The hive's number in its cluster.
    pub fn id(mut self, id: HiveId) -> Self {
        self.id = id;
        self
    }

    /// Messages that may be under way for those who emit or ask through the [`Hive`] itself.
    pub fn credits(mut self, credits: u32) -> Self {
        self.credits = Some(credits);
        self
    }

    /// Sends the records of all apps to `journal`, which begins where `colony` is: what is in it is restored, and what it
    /// says has been emitted and not handled is sent again. Every app must be the same, in the same order, and the seed
    /// must be that of the log.
    pub fn journal(mut self, journal: Arc<dyn Journal>, colony: Colony) -> Self {
        self.journal = Some((journal, colony));
        self
    }

    /// Tells `recorder` what apps send.
    pub(crate) fn recorder(mut self, recorder: Arc<Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Starts the hive.
    pub fn start(self) -> Result<Hive, StartError> {
        for (at, (name, _)) in self.apps.iter().enumerate() {
            if self.apps[..at].iter().any(|(other, _)| other == name) {
                return Err(StartError::SameName { app: name });
            }
        }
        if let Some(table) = self.settings.keys().find(|t| !self.apps.iter().any(|(name, _)| name == t)) {
            let known = self.apps.iter().map(|(name, _)| *name).collect();
            return Err(StartError::UnknownApp { table: table.clone(), known });
        }
        let platform = match self.platform {
            Some(platform) => platform,
            None => {
                let runtime = tokio::runtime::Handle::try_current().map_err(|_| StartError::NoRuntime)?;
                Arc::new(TokioPlatform::new(runtime))
            }
        };
        let io = Arc::new(IoBees::numbered_from(platform.random() >> 1));
        let seed = self.seed.unwrap_or_else(|| platform.random());
        let (journal, mut colony) = self.journal.map_or((None, Colony::default()), |(j, c)| (Some(j), c));
        let hive = Arc::new(HiveInner {
            id: self.id,
            instance: crate::hive::next_instance(),
            types: Types::recorded(io.clone(), self.recorder),
            io,
            timers: Timers::default(),
            dead_letters: DeadLetters::default(),
            credits: Credits::new(self.credits.unwrap_or(limits::CREDITS_PER_IO_BEE)),
            lane: SenderLane::shared(),
            link: journal.map(|journal| Link::new(journal, &colony, platform.random())),
            apps: RwLock::default(),
            workers: Workers::new(platform.workers()),
            under_way: Arc::default(),
            stopped: AtomicBool::new(false),
            over: AtomicBool::new(false),
            stopping: Notify::new(),
            ended: Notify::new(),
            stop_done: Notify::new(),
            tasks: AtomicUsize::new(0),
            tasks_done: Notify::new(),
            emits: Mutex::new(HashMap::new()),
            unhandled: Mutex::new(BTreeSet::new()),
            cycles: AtomicU64::new(0),
            last_now: Default::default(),
            started: platform.now(),
            platform,
        });
        if let Some(link) = &hive.link {
            link.attach(&hive)
        }
        let dead = recovery::dead_lanes(&colony);
        let mut installing = Installing {
            hive: &hive,
            seed,
            settings: toml::Table::new(),
            registry: self.registry,
            last: colony.last,
            bees: std::mem::take(&mut colony.bees),
            lanes: SenderLanes::default(),
            apps: Vec::new(),
            seal: Vec::new(),
            start: Vec::new(),
        };
        for (name, install) in self.apps {
            installing.settings = match self.settings.get(name) {
                Some(toml::Value::Table(table)) => table.clone(),
                Some(_) => {
                    let why = "expected a table of settings".to_string();
                    return Err(ConfigError { table: format!("apps.{name}"), why }.into());
                }
                None => toml::Table::new(),
            };
            install(&mut installing)?;
        }
        let Installing { apps, seal, start, bees, mut lanes, .. } = installing;
        *hive.apps.write() = apps;
        seal.into_iter().for_each(|seal| seal(&hive.types));
        if let Some(((app, _), _)) = bees.first_key_value() {
            return Err(StartError::Log {
                why: format!("it has bees of app number {app}, which is not there"),
            });
        }
        recovery::retire_lanes(&hive, dead);
        recovery::send_again(&hive, &colony, &mut lanes)
            .map_err(|error| StartError::Log { why: error.to_string() })?;
        start.into_iter().for_each(|start| start(&hive));
        hive.platform.spawn(Box::pin(timers::run(hive.clone())));
        hive.platform.spawn(Box::pin(workers::maintain(hive.clone())));
        let watched = Arc::downgrade(&hive);
        hive.platform.spawn_thread("beehive-relief", Box::new(move || relief::relieve(watched)));
        Ok(Hive(hive))
    }
}

impl Installing<'_> {
    fn install<A: Handlers>(&mut self) -> Result<(), StartError> {
        if let Some(key) = same_key_name(A::DICTS) {
            return Err(StartError::SameKeyName { app: A::NAME, key });
        }
        let prototype = A::configured(&ConfigSource::new(A::NAME, std::mem::take(&mut self.settings)))?;
        let index = self.apps.len() as u16;
        let mine: Vec<_> = self.bees.extract_if(.., |(app, _), _| *app == index).collect();
        let registry = match &self.registry {
            Some(make) => make(A::NAME),
            None => {
                let owned =
                    mine.iter().map(|((_, bee), image)| (*bee, image.cells.iter().copied().collect()));
                Arc::new(LocalRegistry::restored(Ownership::restored(owned, self.last)))
            }
        };
        let runtime = AppRuntime::new(index, self.seed, prototype, registry, self.hive.link.clone());
        for ((_, bee), image) in mine {
            let lane = self.lanes.of_bee(lane_of(index, bee), &image.heir_of);
            runtime.restore(bee, image, lane).map_err(|error| StartError::Log { why: error.to_string() })?
        }
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

/// A derived key type's name that two different types use. Its dictionaries would be taken for columns of one cell.
fn same_key_name(dicts: &[crate::mapper::DictInfo]) -> Option<&'static str> {
    dicts.iter().enumerate().find_map(|(at, d)| {
        let clash = dicts[..at].iter().any(|o| o.group_seed == d.group_seed && o.key_type != d.key_type);
        clash.then_some(d.key)
    })
}
