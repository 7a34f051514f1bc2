//! What a test begins with: apps, settings, and how their cells are spread.

use crate::app::Handlers;
use crate::hive::ownership::registry::LocalRegistry;
use crate::hive::{Builder, Hive, StartError};
use crate::testing::hooks::outbox::Outbox;
use crate::testing::kit::Kit;
use crate::testing::platform::{Chance, VirtualPlatform};
use crate::testing::spread::{OneBee, Spread};
use crate::testing::{Difference, rerun};
use std::sync::Arc;

/// Runs with merges that a comparison makes unless told otherwise.
const MERGING_RUNS: u64 = 8;

/// Apps and settings of a test; made with [`Kit::of`].
#[derive(Clone)]
pub struct Setup {
    apps: Vec<fn(Builder) -> Builder>,
    pub(crate) settings: toml::Table,
    pub(crate) seed: u64,
    pub(crate) failures_allowed: bool,
    pub(crate) merging_runs: u64,
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

    /// Adds an app. The order of apps is that of the chain of those who can answer a message.
    pub fn app<A: Handlers>(mut self) -> Self {
        self.apps.push(|builder| builder.app::<A>());
        self
    }

    /// Settings of the apps, as in a configuration: a table for each app, by name.
    pub fn settings(mut self, apps: toml::Table) -> Self {
        self.settings = apps;
        self
    }

    /// What chance follows from: `ctx.rng()`, and the ids of cells.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Goes on when a handler panics or breaks a rule: for tests of exactly that.
    pub fn failures_allowed(mut self) -> Self {
        self.failures_allowed = true;
        self
    }

    /// How many runs in which bees merge by chance a comparison makes; eight, if nothing is said.
    pub fn merging_runs(mut self, runs: u64) -> Self {
        self.merging_runs = runs;
        self
    }

    /// Starts the apps, with a bee for each cell.
    ///
    /// # Panics
    /// When a hive with these apps and settings does not start; the message says why.
    pub fn start(&self) -> Kit {
        self.start_spread(Spread::Apart)
    }

    /// As [`Setup::start`], with the cells spread over bees in some way.
    pub fn start_spread(&self, spread: Spread) -> Kit {
        self.kit(spread, false)
    }

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
            .registry(move |_| match spread {
                Spread::Together => Arc::new(OneBee::default()),
                _ => Arc::new(LocalRegistry::default()),
            })
            .probe(outbox.clone())
            .snapshots_by_moment()
            .start()?;
        let merging = match spread {
            Spread::Merging { seed } => Some(Chance::new(!seed)),
            _ => None,
        };
        Ok(Kit::new(hive, platform, outbox, self, merging, compared))
    }

    /// Runs `scenario` again and again, from the beginning, with the cells spread differently over bees: one bee for all
    /// of them, a bee for each, bees that merge by chance while they work. Each time the answers, what apps sent, and
    /// the state in the end must be the same as with one bee.
    ///
    /// What it finds is a handler whose outcome depends on something that is no function of its message and its cells,
    /// nor of the order of messages from one sender: mostly on which of two senders was heard first.
    pub fn compare(&self, scenario: impl Fn(&mut Kit)) -> Result<(), Difference> {
        rerun::compare(self, scenario)
    }

    /// As [`Setup::compare`], for a test.
    ///
    /// # Panics
    /// When there is a difference; the message names it.
    pub fn check(&self, scenario: impl Fn(&mut Kit)) {
        if let Err(difference) = self.compare(scenario) {
            panic!("{difference}")
        }
    }
}
