//! A cluster of hives in one thread, on a virtual clock.

mod colonies;
mod disturb;
mod drive;
mod explore;
mod network;
mod process;
mod replica;
mod report;
mod setup;
mod storm;
mod streams;
pub(crate) mod trace;

use crate::app::Handlers;
use crate::cell::{BeeId, HiveId};
use crate::cluster::Incarnation;
use crate::hive::consensus::journal::LaneId;
use crate::hive::consensus::journal::{Journal, LogState};
use crate::hive::consensus::registry::{Decision, Proposal, RegistryState};
use crate::hive::dispatch::inner::Hive;
use crate::hive::links::network::Membership;
use crate::seams::Platform;
use crate::testing::hooks::tracer::Tracer;
use crate::testing::platform::Chance;
use crate::testing::{TestJournal, VirtualPlatform};
use colonies::Colony;
pub use explore::{Explored, FailedSeed};
use network::SimulatedNetwork;
use process::Process;
use replica::{Replica, SharedRegistry};
pub use setup::{ClusterSetup, NetworkFaults};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use storm::Storm;
pub use storm::{FaultKind, Faults};
pub(crate) use streams::Followers;
use streams::Streams;
pub use trace::Trace;
use trace::{Kind, Log};

/// A hive of a simulated cluster.
struct Member {
    /// `None` while the hive is down.
    running: Option<Running>,
    incarnation: Incarnation,
    process: Process,
    /// The time by which commits of its logs are later than usual.
    disk_delay: Duration,
    /// Whether a partition separates it from the registry.
    is_isolated: bool,
    /// Its replicas of the colonies, while it runs. `None` if no app has views.
    followers: Option<Arc<Followers>>,
}

#[derive(Clone)]
struct Running {
    hive: Hive,
    replica: Arc<Replica>,
}

/// Several hives in the test's own thread, with a registry that they share, a journal for each colony, and a network that
/// loses, doubles and reorders packets. Time stands still unless the test waits for something.
///
/// Everything that happens is a function of the seed and of what the test does, also in another process:
/// [`Cluster::trace`] is then the same to the byte. This holds as long as the handlers depend only on their message, their
/// cells and their context, and the test takes its random numbers from [`Cluster::random`].
///
/// A test with faults that a seed decides on. `check` runs it with 20 seeds and, if it fails, prints the command that repeats the
/// failure, and what happened before it:
///
/// ```
/// # extern crate beehive_core as beehive;
/// # use beehive::{App, Dict, Message, handlers};
/// use beehive::testing::{Cluster, Faults};
/// use std::time::Duration;
///
/// # #[derive(Message)]
/// # #[message(reply = u64)]
/// # struct Count(u64);
/// # #[derive(App)]
/// # struct Counters { counters: Dict<u64, u64> }
/// # #[handlers]
/// # impl Counters {
/// #     #[rcv]
/// #     fn count(&mut self, msg: &Count) -> u64 {
/// #         self.counters.update(msg.0, |counter| { *counter += 1; *counter })
/// #     }
/// # }
/// Cluster::of::<Counters>().faults(Faults::every(Duration::from_millis(20))).check(20, |cluster| {
///     let answers = (0..30).filter(|_| cluster.request(Count(5)).is_ok()).count() as u64;
///     cluster.heal();
///     // a request without an answer may have been handled
///     let counted = cluster.request(Count(5)).unwrap();
///     assert!(answers < counted && counted <= 31);
/// });
/// ```
///
/// Or the test causes each fault at a time of its choice: [`crash`](Cluster::crash), [`restart`](Cluster::restart),
/// [`take_over`](Cluster::take_over), [`depose`](Cluster::depose), [`partition`](Cluster::partition), [`pause`](Cluster::pause),
/// [`slow_disk`](Cluster::slow_disk), [`skew_clock`](Cluster::skew_clock) and [`move_bee`](Cluster::move_bee).
///
/// After a crash, messages are not quarantined. If a handler panics or touches a cell outside its map, the test fails, unless
/// [`failures_allowed`](ClusterSetup::failures_allowed) is set.
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
    /// Source of the test's own random choices.
    chance: Chance,
    platform: VirtualPlatform,
    log: Arc<Log>,
    registry: Arc<SharedRegistry>,
    network: Arc<SimulatedNetwork>,
    /// The logs of the colonies, for the replicas of all hives.
    streams: Arc<Streams>,
    members: Vec<Member>,
    /// The colonies, in the order of their ids, which begin with 1.
    colonies: Vec<Colony>,
    /// Number of journals opened so far.
    journals: u64,
    /// Number of entries that arrived in a log after the next process had begun its term.
    late: usize,
    /// The journals of leaders that were deposed, and have not been told.
    untold: Vec<Arc<TestJournal>>,
    /// The faults that happen at random.
    storm: Option<Storm>,
    /// Number of faults so far, by kind.
    counts: BTreeMap<FaultKind, u64>,
    /// The chain of the message that failed the test.
    failure: Option<u64>,
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
    /// Adds an event to the trace.
    fn tell(&self, kind: Kind, hive: Option<usize>, what: impl std::fmt::Display) {
        self.log.add(kind, hive.map(|hive| HiveId(hive as u32)), None, what)
    }

    /// Begins the setup of a cluster with one app. More apps can be added.
    pub fn of<A: Handlers>() -> ClusterSetup {
        ClusterSetup::new().app::<A>()
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

    /// Returns the platform that all hives share.
    pub fn platform(&self) -> &VirtualPlatform {
        &self.platform
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
        self.members[hive].process.begins();
        self.tell(Kind::Fault, Some(hive), "starts");
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
        self.members[hive].followers = self.setup.follows().then(|| {
            let seed = Platform::random(&self.platform);
            Followers::new(&self.streams, &self.members[hive].process, seed, self.setup.followers_delay_max)
        });
        let logs: Vec<(Arc<TestJournal>, LogState)> =
            colonies.iter().map(|colony| self.begin_term(*colony, hive)).collect();
        for (colony, (_, state)) in colonies.iter().zip(&logs) {
            let term = state.last.term();
            self.registry.decide(&[Proposal::Leader { colony: *colony, term, hive: id }]);
        }
        let journals: Vec<Arc<TestJournal>> = logs.iter().map(|(journal, _)| journal.clone()).collect();
        let logs: Vec<_> =
            logs.into_iter().map(|(journal, state)| (journal as Arc<dyn Journal>, state)).collect();
        let member = &self.members[hive];
        let replica = Replica::new(&self.registry, &member.process, self.setup.replica_delay_max);
        replica.cut(member.is_isolated);
        let followers = member.followers.clone();
        followers.iter().for_each(|followers| followers.cut(member.is_isolated));

        let network = self.network.connect(id);
        let builder = self.setup.apps.iter().fold(Hive::builder(), |builder, app| app(builder));
        let builder = match self.setup.credits {
            Some(credits) => builder.credits(credits),
            None => builder,
        };
        let hive = builder
            .id(id)
            .seed(0x6265_6568_6976_6500)
            .platform(Arc::new(member.process.clone()))
            .probe(Arc::new(Tracer::new(self.log.clone(), id)))
            .registry(replica.clone())
            .journals(logs)
            .cluster(Membership { network, incarnation, lane, colonies, follows: followers.is_some() })
            .mutant(self.setup.mutant)
            .start()?;
        if let (Some(followers), Some(followed)) = (followers, hive.followed()) {
            followers.attach(followed)
        }
        // Messages that were in an outbox wait for the crash markers of this process, and block their thread
        journals.iter().for_each(|journal| {
            journal.commit_waiting();
            journal.stall(member.is_isolated)
        });
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
        match std::thread::panicking() {
            true => eprintln!("{}", self.report(None)),
            false => (0..self.hives()).for_each(|hive| self.end(hive)),
        }
        self.platform.clear()
    }
}
