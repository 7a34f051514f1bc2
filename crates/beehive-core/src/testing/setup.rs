//! The setup of a test: apps, settings, and the distribution of their cells.

use crate::app::Handlers;
use crate::hive::consensus::registry::LocalRegistry;
use crate::hive::dispatch::inner::Hive;
use crate::hive::{Builder, StartError};
use crate::testing::hooks::outbox::Outbox;
use crate::testing::kit::Kit;
use crate::testing::platform::{Chance, VirtualPlatform};
use crate::testing::spread::{OneBee, Spread};
use crate::testing::{Difference, rerun};
use std::sync::Arc;

/// Default number of runs with random merges in a comparison.
const MERGING_RUNS: u64 = 8;

/// The apps and settings of a test. Created by [`Kit::of`].
#[derive(Clone)]
pub struct Setup {
    apps: Vec<fn(Builder) -> Builder>,
    pub(crate) settings: toml::Table,
    pub(crate) seed: u64,
    pub(crate) failures_allowed: bool,
    pub(crate) merging_runs: u64,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("apps", &self.apps.len())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Setup {
    pub(crate) fn new() -> Setup {
        Setup {
            apps: Vec::new(),
            settings: toml::Table::new(),
            seed: 0x6265_6568_6976_6500,
            failures_allowed: false,
            merging_runs: MERGING_RUNS,
        }
    }

    /// Adds an app. Apps that can answer a message are asked in the order in which they are added.
    pub fn app<A: Handlers>(mut self) -> Self {
        self.apps.push(|builder| builder.app::<A>());
        self
    }

    /// Sets the settings of the apps, as in a configuration file: one table per app, by name.
    pub fn settings(mut self, apps: toml::Table) -> Self {
        self.settings = apps;
        self
    }

    /// Sets the seed of `ctx.rng()` and of the cell ids.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Lets the test continue when a handler panics or touches a cell outside its map. Use this to test such failures.
    pub fn failures_allowed(mut self) -> Self {
        self.failures_allowed = true;
        self
    }

    /// Sets the number of runs with random merges in a comparison. The default is 8.
    pub fn merging_runs(mut self, runs: u64) -> Self {
        self.merging_runs = runs;
        self
    }

    /// Starts the apps, with one bee per cell.
    ///
    /// # Panics
    ///
    /// Panics if a hive with these apps and settings does not start. The message says why.
    #[track_caller]
    pub fn start(&self) -> Kit {
        self.start_spread(Spread::Apart)
    }

    /// Same as [`Setup::start`], with the given distribution of cells over bees.
    ///
    /// # Panics
    ///
    /// See [`Setup::start`].
    #[track_caller]
    pub fn start_spread(&self, spread: Spread) -> Kit {
        self.kit(spread, false)
    }

    #[track_caller]
    pub(crate) fn kit(&self, spread: Spread, compared: bool) -> Kit {
        match self.try_kit(spread, compared) {
            Ok(kit) => kit,
            Err(error) => panic!("{error}"),
        }
    }

    fn try_kit(&self, spread: Spread, compared: bool) -> Result<Kit, StartError> {
        let platform = match spread {
            Spread::Merging { seed } => VirtualPlatform::shuffled(self.seed, seed),
            _ => VirtualPlatform::new(self.seed),
        };

        let outbox = Arc::new(Outbox::default());
        let builder = self.apps.iter().fold(Hive::builder(), |builder, app| app(builder));
        let hive = builder
            .settings(self.settings.clone())
            .seed(self.seed)
            .platform(Arc::new(platform.clone()))
            .registry(match spread {
                Spread::Together => Arc::new(OneBee::default()),
                _ => Arc::new(LocalRegistry::default()),
            })
            .probe(outbox.clone())
            .views_by_moment()
            .start()?;

        let merging = match spread {
            Spread::Merging { seed } => Some(Chance::new(!seed)),
            _ => None,
        };

        Ok(Kit::new(hive, platform, outbox, self, merging, compared))
    }

    /// Runs `scenario` several times from the beginning, each time with a different distribution of cells: one bee for
    /// all cells, one bee per cell, and bees that merge at random while they work. The answers, the messages sent by
    /// apps, and the final state must always be the same as with one bee.
    ///
    /// A difference means that a handler's outcome depends on more than its message, its cells, and the order of
    /// messages from one sender. Usually, the outcome depends on which of two senders comes first.
    ///
    /// # Errors
    ///
    /// Returns the first difference.
    pub fn compare(&self, scenario: impl Fn(&mut Kit)) -> Result<(), Difference> {
        rerun::compare(self, scenario)
    }

    /// Same as [`Setup::compare`], for use in a test.
    ///
    /// # Panics
    ///
    /// Panics if there is a difference. The message describes it.
    #[track_caller]
    pub fn check(&self, scenario: impl Fn(&mut Kit)) {
        if let Err(difference) = self.compare(scenario) {
            panic!("{difference}")
        }
    }
}
