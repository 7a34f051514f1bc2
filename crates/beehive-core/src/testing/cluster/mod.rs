//! A cluster of hives in one thread, on a virtual clock.

mod colonies;
mod network;
mod replica;

use crate::app::Handlers;
use crate::cell::{BeeId, HiveId};
use crate::cluster::Incarnation;
use crate::hive::consensus::journal::LaneId;
use crate::hive::consensus::journal::{Journal, LogState};
use crate::hive::consensus::registry::{Decision, Proposal, Registry, RegistryState};
use crate::hive::dispatch::inner::Hive;
use crate::hive::links::network::Membership;
use crate::hive::{Builder, MoveError};
use crate::mutant::Mutant;
use crate::testing::{TestJournal, VirtualPlatform};
use colonies::Colony;
use network::SimulatedNetwork;
use replica::{Replica, SharedRegistry};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The apps and faults of a simulated cluster. Created by [`Cluster::of`].
#[derive(Clone)]
pub struct ClusterSetup {
    apps: Vec<fn(Builder) -> Builder>,
    hives: u32,
    logs_per_hive: u32,
    faults: NetworkFaults,
    refuse_one_in: u64,
    replica_delay_max: Duration,
    credits: Option<u32>,
    mutant: Option<Mutant>,
}

impl std::fmt::Debug for ClusterSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterSetup")
            .field("apps", &self.apps.len())
            .field("hives", &self.hives)
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
    /// Adds an app. All hives have all apps.
    pub fn app<A: Handlers>(mut self) -> Self {
        self.apps.push(|builder| builder.app::<A>());
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

    /// Sets what the network does to packets.
    pub fn network(mut self, faults: NetworkFaults) -> Self {
        self.faults = faults;
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

    /// Sets the number of messages that may be in flight on each hive ([`Builder::credits`]).
    pub fn credits(mut self, credits: u32) -> Self {
        self.credits = Some(credits);
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
        let registry = SharedRegistry::new(platform.clone());
        let network = SimulatedNetwork::new(platform.clone(), self.faults);
        let members = hives.iter().map(|_| Member { running: None, incarnation: Incarnation(0) });
        let mut cluster = Cluster {
            setup: self,
            seed,
            platform,
            registry,
            network,
            members: members.collect(),
            colonies: Vec::new(),
            journals: 0,
            late: 0,
            untold: Vec::new(),
        };
        (0..hives.len()).for_each(|hive| cluster.found(hive));
        (0..hives.len()).for_each(|hive| cluster.restart(hive));
        cluster
    }
}

/// A hive of a simulated cluster.
struct Member {
    /// `None` while the hive is down.
    running: Option<Running>,
    incarnation: Incarnation,
}

struct Running {
    hive: Hive,
    replica: Arc<Replica>,
}

/// Several hives in the test's own thread, with a registry that they share, a journal for each colony, and a network that
/// loses, doubles and reorders packets. Time stands still unless the test waits for something. After a crash, messages are not
/// quarantined.
///
/// ```
/// # extern crate beehive_core as beehive;
/// # use beehive::{App, Dict, Message, handlers};
/// use beehive::testing::Cluster;
///
/// #[derive(Message)]
/// #[message(reply = u64)]
/// struct Count(u64);
///
/// #[derive(App)]
/// struct Counters {
///     counters: Dict<u64, u64>,
/// }
///
/// #[handlers]
/// impl Counters {
///     #[rcv]
///     fn count(&mut self, msg: &Count) -> u64 {
///         let counter = self.counters.entry(msg.0).or_default();
///         *counter += 1;
///         *counter
///     }
/// }
///
/// let mut cluster = Cluster::of::<Counters>().hives(3).start(7);
/// for count in 1..=6 {
///     // whichever hive gets the request, one of them has the counter
///     let hive = cluster.hive(count as usize % 3).clone();
///     assert_eq!(cluster.drive(hive.request(Count(5))), Ok(count));
/// }
/// cluster.crash(0);
/// cluster.restart(0);
/// let hive = cluster.hive(1).clone();
/// assert_eq!(cluster.drive(hive.request(Count(5))), Ok(7));
/// ```
pub struct Cluster {
    setup: ClusterSetup,
    seed: u64,
    platform: VirtualPlatform,
    registry: Arc<SharedRegistry>,
    network: Arc<SimulatedNetwork>,
    members: Vec<Member>,
    /// The colonies, in the order of their ids, which begin with 1.
    colonies: Vec<Colony>,
    /// Number of journals opened so far.
    journals: u64,
    /// Number of entries that arrived in a log after the next process had begun its term.
    late: usize,
    /// The journals of leaders that were deposed, and have not been told.
    untold: Vec<Arc<TestJournal>>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("seed", &self.seed)
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Begins the setup of a cluster with one app. More apps can be added.
    pub fn of<A: Handlers>() -> ClusterSetup {
        let setup = ClusterSetup {
            apps: Vec::new(),
            hives: 3,
            logs_per_hive: 1,
            faults: NetworkFaults::default(),
            refuse_one_in: 0,
            replica_delay_max: Duration::from_millis(2),
            credits: None,
            mutant: None,
        };
        setup.app::<A>()
    }

    /// Returns a hive.
    ///
    /// # Panics
    ///
    /// Panics if the hive is down.
    #[track_caller]
    pub fn hive(&self, hive: usize) -> &Hive {
        match &self.members[hive].running {
            Some(running) => &running.hive,
            None => panic!("hive {hive} is down"),
        }
    }

    /// Checks whether a hive runs.
    pub fn is_running(&self, hive: usize) -> bool {
        self.members[hive].running.is_some()
    }

    /// Returns the number of hives.
    pub fn hives(&self) -> usize {
        self.members.len()
    }

    /// Runs everything until a future completes. Time advances to the next event whenever nothing else is left to do.
    #[track_caller]
    pub fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        self.platform.drive(future)
    }

    /// Lets time pass.
    #[track_caller]
    pub fn advance(&self, duration: Duration) {
        self.platform.advance(duration)
    }

    /// Returns the platform that all hives share.
    pub fn platform(&self) -> &VirtualPlatform {
        &self.platform
    }

    /// Cuts the connection between two hives, in both directions, or repairs it.
    pub fn cut(&self, one: usize, other: usize, is_cut: bool) {
        self.network.cut(HiveId(one as u32), HiveId(other as u32), is_cut)
    }

    /// Lets a hive's replica of the registry learn nothing for some time.
    ///
    /// # Panics
    ///
    /// Panics if the hive is down.
    #[track_caller]
    pub fn hold_replica(&self, hive: usize, duration: Duration) {
        match &self.members[hive].running {
            Some(running) => running.replica.hold(duration),
            None => panic!("hive {hive} is down"),
        }
    }

    /// Suspends or resumes the commits of a hive's logs.
    ///
    /// # Panics
    ///
    /// Panics if the hive is down.
    #[track_caller]
    pub fn stall(&self, hive: usize, is_stalled: bool) {
        assert!(self.is_running(hive), "hive {hive} is down");
        self.journals(hive).for_each(|journal| journal.stall(is_stalled))
    }

    /// Ends a hive at once. What its logs have not committed is lost, and nobody is told. It arrives in the logs when the
    /// next process has begun its term, and then has no effect.
    pub fn crash(&mut self, hive: usize) {
        let Some(running) = self.members[hive].running.take() else { return };
        self.journals(hive).for_each(|journal| journal.stop());
        self.network.disconnect(HiveId(hive as u32));
        running.replica.stop();
        // nothing that the hive does from now on is seen by anybody
        self.drive(running.hive.stop(Duration::ZERO));
        self.colonies.iter_mut().filter(|colony| colony.leader == hive).for_each(Colony::is_abandoned)
    }

    /// Starts a hive that is down. It leads the colonies that it led and that no other hive has taken over. If there are none,
    /// it gets new ones. Each log begins a term.
    ///
    /// # Panics
    ///
    /// Panics if the hive does not start.
    #[track_caller]
    pub fn restart(&mut self, hive: usize) {
        if self.is_running(hive) {
            return;
        }
        let (id, after) = (HiveId(hive as u32), self.members[hive].incarnation);
        let joined = self.registry.decide(&[Proposal::Join { hive: id, after }]).pop();
        let Some(Decision::Joined { incarnation, lane, .. }) = joined else {
            panic!("hive {hive} cannot join: {joined:?}")
        };
        self.members[hive].incarnation = incarnation;
        if self.led_by(hive).is_empty() {
            self.found(hive)
        }
        match self.start_hive(hive, incarnation, lane) {
            Ok(running) => self.members[hive].running = Some(running),
            Err(error) => panic!("hive {hive}: {error}"),
        }
    }

    fn start_hive(
        &mut self,
        hive: usize,
        incarnation: Incarnation,
        lane: LaneId,
    ) -> Result<Running, crate::hive::StartError> {
        let id = HiveId(hive as u32);
        let colonies = self.led_by(hive);
        let logs: Vec<(Arc<TestJournal>, LogState)> =
            colonies.iter().map(|colony| self.begin_term(*colony, hive)).collect();
        for (colony, (_, state)) in colonies.iter().zip(&logs) {
            let term = state.last.term();
            self.registry.decide(&[Proposal::Leader { colony: *colony, term, hive: id }]);
        }
        let journals: Vec<Arc<TestJournal>> = logs.iter().map(|(journal, _)| journal.clone()).collect();
        let logs: Vec<_> =
            logs.into_iter().map(|(journal, state)| (journal as Arc<dyn Journal>, state)).collect();
        let replica = Replica::new(&self.registry, self.setup.replica_delay_max);

        let network = self.network.connect(id);
        let builder = self.setup.apps.iter().fold(Hive::builder(), |builder, app| app(builder));
        let builder = match self.setup.credits {
            Some(credits) => builder.credits(credits),
            None => builder,
        };
        let hive = builder
            .id(id)
            .seed(0x6265_6568_6976_6500)
            .platform(Arc::new(self.platform.clone()))
            .registry(replica.clone())
            .journals(logs)
            .cluster(Membership { network, incarnation, lane, colonies })
            .mutant(self.setup.mutant)
            .start()?;
        // Messages that were in an outbox wait for the crash markers of this process, and block their thread
        journals.iter().for_each(|journal| journal.commit_waiting());
        Ok(Running { hive, replica })
    }

    /// Returns the states of the logs of the colonies that a hive leads, or that it led last, as their committed entries say.
    ///
    /// # Panics
    ///
    /// Panics if a log cannot be decoded.
    #[track_caller]
    pub fn log_states(&self, hive: usize) -> Vec<LogState> {
        self.led_by(hive).into_iter().map(|colony| self.colonies[colony.0 as usize - 1].state()).collect()
    }

    /// Stops refusing entries, and repairs the network: from now on, it loses and doubles nothing.
    pub fn heal(&mut self) {
        self.setup.refuse_one_in = 0;
        self.colonies.iter().flat_map(|colony| &colony.journal).for_each(|journal| journal.accept_all());
        self.network.heal()
    }

    /// Returns the bees of an app, each with the hive that the registry says has it.
    ///
    /// # Panics
    ///
    /// Panics if there is no such app, or all hives are down.
    #[track_caller]
    pub fn bees(&self, app: &str) -> Vec<(BeeId, usize)> {
        let running = self.members.iter().flat_map(|member| &member.running).next();
        let names =
            running.map(|running| running.hive.inner().apps.read().iter().map(|app| app.name()).collect());
        let names: Vec<&str> = names.unwrap_or_default();
        let Some(index) = names.iter().position(|name| *name == app) else { panic!("no app `{app}` runs") };
        self.registry(|view| {
            let all = view.colonies().flat_map(|(colony, entry)| {
                let hive = entry.leader.map_or(0, |hive| hive.0 as usize);
                view.bees_at(colony).map(move |bee| (bee, hive))
            });
            all.filter(|(bee, _)| view.bee(*bee).is_some_and(|entry| entry.app.index() == index)).collect()
        })
    }

    /// Moves a bee to a hive, and lets time pass until the registry says that it is there: see [`Hive::move_bee`].
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`] if the bee was not moved.
    #[track_caller]
    pub fn move_bee(&self, bee: BeeId, to: usize) -> Result<(), MoveError> {
        let running = self.members.iter().flat_map(|member| &member.running).next();
        let Some(running) = running else { return Err(MoveError::Unavailable) };
        // the hive may not know yet where the bee is
        self.drive(running.replica.wait(self.registry(RegistryState::index)));
        self.drive(running.hive.move_bee(bee, HiveId(to as u32)))
    }

    /// Asks the registry to move a bee to a hive, and lets no time pass. Returns whether the bee will move, unless something
    /// prevents it.
    pub fn aim(&self, bee: BeeId, to: usize) -> bool {
        let led = self.led_by(to);
        let epoch = self.registry(|view| view.bee(bee).map(|entry| entry.epoch));
        let Some(epoch) = epoch.filter(|_| !led.is_empty()) else { return false };
        let colony = led[bee.0 as usize % led.len()];
        let decided = self.registry.decide(&[Proposal::Aim { bee, epoch, colony }]);
        matches!(decided[..], [Decision::Done { .. }])
    }

    /// Lets the registry decide proposals, in order. The hives learn of it as of every decision.
    pub fn decide(&self, proposals: &[Proposal]) -> Vec<Decision> {
        self.registry.decide(proposals)
    }

    /// Calls `look` with the state of the registry.
    pub fn registry<R>(&self, look: impl FnOnce(&RegistryState) -> R) -> R {
        self.registry.look(look)
    }

    /// Returns how many entries of crashed processes and of deposed leaders have arrived in a log after the next leader had begun
    /// its term.
    pub fn late_entries(&self) -> usize {
        self.late
    }

    /// Returns the size of the largest packet so far, in bytes.
    pub fn largest_packet(&self) -> usize {
        self.network.largest_packet()
    }

    /// Returns what the network did, as text: the number of packets, and of those that were lost, doubled and cut off.
    pub fn traffic(&self) -> String {
        self.network.traffic()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for hive in 0..self.hives() {
                self.crash(hive)
            }
        }
        self.platform.clear()
    }
}
