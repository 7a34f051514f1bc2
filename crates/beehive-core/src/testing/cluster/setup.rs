//! The setup of a simulated cluster: apps, number of hives, and faults.

use crate::app::Handlers;
use crate::cell::HiveId;
use crate::cluster::Incarnation;
use crate::hive::Builder;
use crate::mutant::Mutant;
use crate::testing::VirtualPlatform;
use crate::testing::cluster::network::SimulatedNetwork;
use crate::testing::cluster::process::Process;
use crate::testing::cluster::replica::SharedRegistry;
use crate::testing::cluster::storm::{Faults, Storm};
use crate::testing::cluster::trace::{self, Log};
use crate::testing::cluster::{Cluster, Member};
use crate::testing::platform::Chance;
use crate::view::Published;
use std::collections::BTreeMap;
use std::time::Duration;

/// The apps and faults of a simulated cluster. Created by [`Cluster::of`].
#[derive(Clone)]
pub struct ClusterSetup {
    pub(super) apps: Vec<fn(Builder) -> Builder>,
    /// Whether an app has views.
    has_views: bool,
    /// Whether the hives' views show the cells of all hives.
    follows: bool,
    hives: u32,
    pub(super) logs_per_hive: u32,
    network: NetworkFaults,
    pub(super) faults: Option<Faults>,
    pub(super) refuse_one_in: u64,
    pub(super) replica_delay_max: Duration,
    pub(super) followers_delay_max: Duration,
    pub(super) credits: Option<u32>,
    pub(super) failures_allowed: bool,
    events_kept: usize,
    pub(super) mutant: Option<Mutant>,
}

impl std::fmt::Debug for ClusterSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterSetup")
            .field("apps", &self.apps.len())
            .field("hives", &self.hives)
            .field("network", &self.network)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// What the network between the hives does to packets.
#[derive(Clone, Copy, Debug)]
pub struct NetworkFaults {
    /// One packet in this many is lost. 0 means none.
    pub lose_one_in: u64,
    /// One packet in this many arrives twice. 0 means none.
    pub double_one_in: u64,
    /// Longest time that a packet takes. The time is random, so packets overtake one another.
    pub delay_max: Duration,
}

impl Default for NetworkFaults {
    /// Returns a network that loses one packet in twenty, doubles as many, and delays each up to two milliseconds.
    fn default() -> Self {
        NetworkFaults { lose_one_in: 20, double_one_in: 20, delay_max: Duration::from_millis(2) }
    }
}

impl ClusterSetup {
    pub(super) fn new() -> ClusterSetup {
        ClusterSetup {
            apps: Vec::new(),
            has_views: false,
            follows: true,
            hives: 3,
            logs_per_hive: 1,
            network: NetworkFaults::default(),
            faults: None,
            refuse_one_in: 0,
            replica_delay_max: Duration::from_millis(2),
            followers_delay_max: Duration::from_millis(2),
            credits: None,
            failures_allowed: false,
            events_kept: trace::EVENTS_KEPT,
            mutant: None,
        }
    }

    /// Adds an app. All hives have all apps.
    pub fn app<A: Handlers>(mut self) -> Self {
        self.apps.push(|builder| builder.app::<A>());
        self.has_views |= A::PUBLISHED != 0;
        self
    }

    /// Sets the number of hives. The default is 3.
    pub fn hives(mut self, hives: u32) -> Self {
        self.hives = hives.max(1);
        self
    }

    /// Sets the number of logs that each hive has. The default is 1.
    pub fn logs_per_hive(mut self, logs: u32) -> Self {
        self.logs_per_hive = logs.max(1);
        self
    }

    /// Lets faults happen at random times, which the seed decides, until [`Cluster::heal`].
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Sets what the network does to packets.
    pub fn network(mut self, faults: NetworkFaults) -> Self {
        self.network = faults;
        self
    }

    /// Makes each log refuse one entry in this many. The default is 0, which means none.
    pub fn refuse_one_in(mut self, entries: u64) -> Self {
        self.refuse_one_in = entries;
        self
    }

    /// Sets the longest time by which a hive's replica of the registry is late. The default is two milliseconds.
    pub fn replicas_late(mut self, delay_max: Duration) -> Self {
        self.replica_delay_max = delay_max;
        self
    }

    /// Sets the longest time by which a hive's replica of a colony that another hive leads is late. The default is two
    /// milliseconds. A replica catches up with one colony at a time. The views of the hive ([`Dict::shared`](crate::Dict::shared))
    /// show what its replicas have.
    pub fn followers_late(mut self, delay_max: Duration) -> Self {
        self.followers_delay_max = delay_max;
        self
    }

    /// Lets the views of each hive show only the cells of its own bees, like those of a hive whose host has no replicas of other
    /// hives' logs ([`Membership::follows`](crate::cluster::Membership::follows)).
    pub fn own_views(mut self) -> Self {
        self.follows = false;
        self
    }

    /// Checks whether the hives need replicas of the colonies.
    pub(super) fn follows(&self) -> bool {
        self.follows && self.has_views
    }

    /// Sets the number of messages that may be in flight on each hive ([`Builder::credits`]).
    pub fn credits(mut self, credits: u32) -> Self {
        self.credits = Some(credits);
        self
    }

    /// Lets the test continue when a handler panics or touches a cell outside its map. Use this to test such failures.
    pub fn failures_allowed(mut self) -> Self {
        self.failures_allowed = true;
        self
    }

    /// Sets the number of the newest events that the [trace](Cluster::trace) keeps. The default is 10 000.
    pub fn keep_events(mut self, events: usize) -> Self {
        self.events_kept = events;
        self
    }

    /// Breaks a rule of the protocol, to test the checkers.
    #[doc(hidden)]
    pub fn mutant(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    /// Starts the hives. Everything that happens is a function of `seed` and of what the test does.
    ///
    /// # Panics
    ///
    /// Panics if a hive does not start.
    #[track_caller]
    pub fn start(self, seed: u64) -> Cluster {
        let platform = VirtualPlatform::shuffled(seed, seed ^ 0x6265_6573);
        let hives: Vec<HiveId> = (0..self.hives).map(HiveId).collect();
        // a repeated run shows as much as is asked for
        let kept = if super::report::asked().is_some() { usize::MAX } else { self.events_kept };
        let log = Log::new(platform.clone(), kept);
        let registry = SharedRegistry::new(platform.clone(), log.clone());
        let network = SimulatedNetwork::new(platform.clone(), self.network, log.clone());
        let members = hives.iter().map(|hive| Member {
            running: None,
            incarnation: Incarnation(0),
            process: Process::new(&platform, *hive),
            disk_delay: Duration::ZERO,
            is_isolated: false,
            followers: None,
        });
        let members = members.collect();
        let storm = self.faults.clone().map(|faults| Storm::new(faults, seed));
        let mut cluster = Cluster {
            setup: self,
            seed,
            chance: Chance::new(!seed),
            platform,
            log,
            registry,
            network,
            streams: Default::default(),
            members,
            colonies: Vec::new(),
            journals: 0,
            late: 0,
            untold: Vec::new(),
            storm,
            counts: BTreeMap::new(),
            failure: None,
        };
        (0..hives.len()).for_each(|hive| cluster.found(hive));
        (0..hives.len()).for_each(|hive| cluster.restart(hive));
        cluster.begin_storm();
        cluster
    }
}
