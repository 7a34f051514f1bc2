//! A hive that is a member of a cluster: its start and its stop.

use super::detector;
use super::disk::{self, Opened};
use super::fits;
use super::folds::{Colony, Decisions};
use super::greeting::{Late, greet};
use super::group::{Group, follow};
use super::journal::{Office, RaftJournal};
use super::leave::leave;
use super::lost;
use super::node::Node;
use super::options::{ClusterError, ClusterOptions};
use super::registry::RaftRegistry;
use super::replace;
use super::router::Router;
use super::transport::{Channel, Transport};
use super::types::{GroupId, MemberId};
use crate::limits::{CUT_OFF_FOR, END_WITHIN, RETRY};
use beehive_core::cluster::{Incarnation, Membership, Network, Packets};
use beehive_core::journal::{Journal, LaneId, LogState};
use beehive_core::registry::{ColonyId, Proposal, Registry};
use beehive_core::seams::{Platform, TokioPlatform};
use beehive_core::{Builder, Hive, HiveId, StartError, Stopped};
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// A hive that is a member of a cluster.
///
/// The hives of the cluster are those of [`ClusterOptions`]. Each of them replicates all logs and the registry. The cluster
/// begins when all hives have started once, and goes on as long as a majority of them runs.
///
/// With a folder ([`ClusterOptions::folder`]), a hive that has ended starts again with the same folder, and takes part again. It
/// gets back the colonies that it led first. If all hives have ended, they start again, and everything that was acknowledged is
/// there. If an operation of the disk fails, the hive stops. Without a folder, a hive that has ended has nothing to return with
/// ([`ClusterError::Forgotten`]), but may be [replaced](ClusterOptions::replaces); and if a majority has ended, what was
/// acknowledged is lost.
///
/// Dropping a member ends it at once, like a crash: the other hives lead its colonies as soon as they suspect it.
pub struct Member {
    node: Arc<Node>,
    hive: Hive,
    replica: Arc<Decisions>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("hive", &self.node.me.hive).finish_non_exhaustive()
    }
}

/// The hive's access to the transport.
struct Links {
    transport: Arc<dyn Transport>,
    receiver: Arc<OnceLock<Arc<dyn Packets>>>,
}

impl Network for Links {
    fn send(&self, to: HiveId, packet: Vec<u8>) {
        self.transport.send(to, Channel::Links, packet)
    }

    fn attach(&self, receiver: Arc<dyn Packets>) {
        let _ = self.receiver.set(receiver);
    }
}

/// The leaderships with which the hive starts, until the tasks that follow them begin.
type Offices = Arc<Mutex<BTreeMap<ColonyId, Arc<Office>>>>;

impl Member {
    /// Starts a hive as a member of a cluster, on the current tokio runtime. `builder` has its apps; its number, its seed, its
    /// logs and its registry are set here.
    ///
    /// Completes when all hives of the cluster have started, or a majority if the hive returns, and this one leads its first
    /// colonies. Dropping the future leaves
    /// the start half done; the process should end then.
    ///
    /// # Errors
    ///
    /// See [`ClusterError`]. After an error, nothing of the hive runs.
    pub async fn start(
        builder: Builder,
        options: ClusterOptions,
        transport: Arc<dyn Transport>,
    ) -> Result<Member, ClusterError> {
        Member::start_unless(std::future::pending(), builder, options, transport).await
    }

    /// Starts a hive as [`start`](Member::start) does, unless `refused` completes before.
    pub(super) async fn start_unless(
        refused: impl Future<Output = ClusterError>,
        builder: Builder,
        options: ClusterOptions,
        transport: Arc<dyn Transport>,
    ) -> Result<Member, ClusterError> {
        // before anything is told to others
        options.raft()?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let platform: Arc<dyn Platform> = Arc::new(TokioPlatform::new(runtime));
        let opened = open_folder(&options, &platform).await?;
        let life = opened.as_ref().map_or_else(|| platform.random(), |opened| opened.life);
        let node = Node::new((life, opened), options, transport, platform);
        let limit = node.options.start_within;
        let mut waits_for = "the other hives do not answer";
        let started = tokio::select! {
            biased;
            started = node.within(limit, begin(&node, builder, &mut waits_for)) => started,
            error = refused => Some(Err(error)),
        };
        match started.unwrap_or_else(|| Err(ClusterError::Alone { why: waits_for.to_string() })) {
            Ok(member) => Ok(member),
            Err(error) => {
                end(&node).await;
                Err(error)
            }
        }
    }

    /// Returns the hive.
    pub fn hive(&self) -> &Hive {
        &self.hive
    }

    /// Hands over what the hive leads, stops it as [`Hive::stop`] does, and then its part of the cluster. Handing over takes a
    /// second at most. What could not be handed over is led by other hives as soon as they suspect this one. If no majority of the
    /// hives runs for a second, because the others have been stopped before, nothing in flight can be committed, and the grace
    /// period ends.
    pub async fn stop(self, grace: Duration) -> Stopped {
        leave(&self.node).await;
        let stopped = tokio::select! {
            biased;
            stopped = self.hive.stop(grace) => stopped,
            () = is_cut_off(&self.node) => self.hive.stop(Duration::ZERO).await,
        };
        end(&self.node).await;
        stopped
    }

    /// Returns how often another hive was suspected.
    pub fn suspicions(&self) -> u64 {
        self.node.hearing.suspicions()
    }

    /// Returns the hives that this one and a majority of all hives suspect now, and their changes: nothing is heard from them,
    /// or they hear nothing. A suspicion may be wrong, and ends when the hive is heard again.
    pub fn suspects(&self) -> watch::Receiver<BTreeSet<HiveId>> {
        self.node.hearing.suspects()
    }

    /// Returns how many snapshots of other hives were installed, because this hive was too far behind for entries.
    pub fn snapshots_installed(&self) -> u64 {
        self.node.installed.load(Ordering::Relaxed)
    }

    /// Returns how often this hive has begun to hand over a group that it led: to a hive that had returned, or because it stops.
    pub fn handed_over(&self) -> u64 {
        self.node.handed_over.load(Ordering::Relaxed)
    }

    /// Returns the colonies, each with the hive that leads it as far as this hive knows.
    pub fn leaders(&self) -> Vec<(ColonyId, Option<HiveId>)> {
        self.replica.read(|state| state.colonies().map(|(colony, entry)| (colony, entry.leader)).collect())
    }

    /// Returns the hive that leads the registry, as far as this hive knows.
    pub fn registry_leader(&self) -> Option<HiveId> {
        let leadership = self.node.group(GroupId::REGISTRY)?.leadership();
        leadership.is_elected.then_some(leadership.leader.hive)
    }

    /// Returns this hive's access to the registry.
    pub fn registry(&self) -> Arc<dyn Registry> {
        Arc::new(RaftRegistry { node: self.node.clone(), replica: self.replica.clone() })
    }

    /// Returns this hive's replica of a colony: the index of the last entry in the log of the group, and the state up to it.
    /// Copies the state.
    pub fn replica(&self, colony: ColonyId) -> Option<(u64, LogState)> {
        let group = self.node.group(GroupId(colony.0))?;
        Some(group.colony.as_ref()?.state())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        end_soon(&self.node);
        // also if the runtime is gone
        if let Some(disk) = &self.node.disk {
            disk.0.close_soon()
        }
    }
}

/// Opens the folder, if there is one, on a thread that may block.
async fn open_folder(
    options: &ClusterOptions,
    platform: &Arc<dyn Platform>,
) -> Result<Option<Opened>, ClusterError> {
    let Some(folder) = options.folder.clone() else { return Ok(None) };
    let (sender, opened) = oneshot::channel();
    let (options, random) = (options.clone(), platform.clone());
    platform.spawn_blocking(Box::new(move || {
        // if the start was given up, the folder closes again
        let _ = sender.send(disk::open(&options, &folder, &mut || random.random()));
    }));
    match opened.await {
        Ok(opened) => Ok(Some(opened?)),
        Err(_) => Err(ClusterError::Group { why: "the program ends".to_string() }),
    }
}

/// Ends what a node runs, without waiting for it. The groups must end, too: they have the node, and would go on voting.
fn end_soon(node: &Arc<Node>) {
    // a task of the node itself would end halfway
    node.stop();
    let ending = node.clone();
    node.platform.spawn(Box::pin(async move { end(&ending).await }))
}

/// Ends what a node runs.
async fn end(node: &Node) {
    node.stop();
    let groups = std::mem::take(&mut *node.groups.write());
    let ended = join_all(groups.into_values().map(|group| async move {
        // fails if it has ended already
        let _ = group.raft.shutdown().await;
    }));
    let mut ended = pin!(ended);
    // A group does not end while its vote waits to be written. On a full disk, that waits until the folder closes
    if node.within(END_WITHIN, &mut ended).await.is_none() {
        if let Some(disk) = &node.disk {
            disk.0.close_soon()
        }
        ended.await;
    }
    if let Some(disk) = &node.disk {
        disk.0.close().await
    }
}

async fn begin(
    node: &Arc<Node>,
    builder: Builder,
    waits_for: &mut &'static str,
) -> Result<Member, ClusterError> {
    let builder = lost::with_app(builder);
    if node.is_return() {
        fits::check(node, builder.shapes()?).await?
    }
    let receiver = Arc::<OnceLock<Arc<dyn Packets>>>::default();
    node.transport.attach(Router::new(node, receiver.clone()));
    let replica = Arc::new(Decisions::default());
    // A hive that returns votes only when others have confirmed that it remembers its promises. On the first start there are none,
    // and the group must exist when the first of the hives founds it.
    let mut is_replaced = false;
    let mut greeted = match node.is_return() {
        true => match greet(node).await {
            // its first start ended before the registry knew it
            Err(ClusterError::Forgotten { .. }) if may_replace(node) => {
                is_replaced = true;
                None
            }
            greeted => Some(greeted?),
        },
        false => None,
    };
    let positions = node.disk.as_ref().map(|disk| disk.0.positions()).unwrap_or_default();
    let registry_group = Group::start(node, GroupId::REGISTRY, replica.clone(), None).await?;
    let registry: Arc<dyn Registry> = Arc::new(RaftRegistry { node: node.clone(), replica: replica.clone() });
    let offices = Offices::default();
    node.spawn(replace::follow_lives(node.clone(), registry_group.clone()));
    node.spawn(detector::run(node.clone(), replica.clone()));
    node.spawn(keep(node.clone(), replica.clone(), offices.clone()));

    if greeted.is_some() {
        // if all hives return, nobody leads
        node.begin_to_elect()
    } else if !is_replaced {
        greeted = match greet(node).await {
            Err(ClusterError::Forgotten { .. }) if may_replace(node) => {
                is_replaced = true;
                None
            }
            greeted => Some(greeted?),
        };
        if greeted.is_some() && node.options.hives().first() == Some(&node.me.hive) {
            // with the lives that are known now: a hive that was greeted may have begun another one since
            let others = node.lives.lock().found();
            registry_group.found(others.into_iter().chain([node.me])).await?
        }
    }
    let of_registry = (&*registry, &*replica, &*registry_group);
    if is_replaced {
        *waits_for = NOT_REPLACED;
        tracing::info!("this hive takes the place of its earlier life");
        replace::replace(node, of_registry, &positions).await?
    }
    let late = greeted.unwrap_or_else(Late::nothing);

    *waits_for = "the registry has no majority";
    let (incarnation, lane) = join(node, &*registry, &replica).await;
    let colonies = found(node, &*registry, &replica).await;
    if node.is_return() && !is_replaced && replace::is_incomplete(node, &replica, &registry_group) {
        *waits_for = NOT_REPLACED;
        tracing::info!("this hive goes on to take the place of its earlier life");
        replace::replace(node, of_registry, &positions).await?
    }
    *waits_for = "a colony has no majority";
    let members = replace::members(node, &registry_group).await;
    let logs = take(node, &members, (&*registry, &replica), &colonies, &offices).await?;
    // The logs name lanes of other hives, and what the registry has decided. The replica must know them
    let known = logs.iter().map(|(_, state)| state.known).max().unwrap_or_default();
    registry.wait(known.max(present(node, &*registry).await)).await;

    let network = Arc::new(Links { transport: node.transport.clone(), receiver });
    let hive = builder
        .id(node.me.hive)
        .seed(node.options.seed)
        .platform(node.platform.clone())
        .registry(registry)
        .journals(logs)
        .cluster(Membership { network, incarnation, lane, colonies, follows: true })
        .start()?;
    if let Some(followed) = hive.followed() {
        // a colony that becomes known later is told by its own task
        let groups: Vec<Arc<Group>> = node.groups.read().values().cloned().collect();
        for group in groups {
            if let Some(colony) = &group.colony {
                colony.tell(ColonyId(group.id.0), &followed)
            }
        }
    }
    node.hive.send_replace(Some(hive.clone()));
    node.begin_to_elect();
    node.spawn(lost::tell(node.clone(), hive.clone(), replica.clone()));
    node.spawn(watch_life(node.clone(), hive.clone(), replica.clone(), incarnation, late));
    Ok(Member { node: node.clone(), hive, replica })
}

const NOT_REPLACED: &str =
    "the others do not replace the earlier life of this hive: a majority of them has to run";

/// Checks whether this hive may take the place of an earlier life: it is told to, and the folder is not that of a member.
fn may_replace(node: &Node) -> bool {
    node.options.replaces && node.member_as_of().is_none()
}

/// Returns an index of the registry that is not lower than that of any decision so far.
pub(super) async fn present(node: &Node, registry: &dyn Registry) -> u64 {
    // a hint of term 0 never has an effect
    let nothing = Proposal::Leader { colony: ColonyId(1), term: 0, hive: node.me.hive };
    loop {
        match registry.propose(vec![nothing.clone()]).await {
            Ok(decisions) => return decisions.last().map_or(0, |decision| decision.index()),
            Err(_) => node.platform.sleep(RETRY).await,
        }
    }
}

/// Joins the cluster. Returns the incarnation and its lane, which no process has used.
///
/// Each start is a new incarnation, whether or not the one before was declared dead. The replica first learns what was decided for
/// an earlier process of this hive: otherwise, this one could take over a lane on which that one has sent. What is decided later
/// was proposed by this process, or by an earlier one that has never learned of it.
async fn join(node: &Node, registry: &dyn Registry, replica: &Decisions) -> (Incarnation, LaneId) {
    let hive = node.me.hive;
    let latest = || replica.read(|state| state.hive(hive).map(|entry| (entry.incarnation, entry.lane())));
    registry.wait(present(node, registry).await).await;
    let before = latest().map_or(Incarnation(0), |(incarnation, _)| incarnation);
    loop {
        let after = match latest() {
            Some((incarnation, Some(lane))) if incarnation > before => return (incarnation, lane),
            Some((incarnation, _)) => incarnation,
            None => Incarnation(0),
        };
        match registry.propose(vec![Proposal::Join { hive, after }]).await {
            Ok(decisions) => registry.wait(decisions.last().map_or(0, |decision| decision.index())).await,
            Err(_) => node.platform.sleep(RETRY).await,
        }
    }
}

/// Founds the colonies with which the cluster begins, unless another hive has. Returns those that this hive leads first.
///
/// All hives propose the same colonies in the same order, and each proposal takes effect once.
async fn found(node: &Node, registry: &dyn Registry, replica: &Decisions) -> Vec<ColonyId> {
    let (hives, logs) = (node.options.hives(), node.options.logs as usize);
    let count = hives.len() * logs;
    loop {
        let founded = replica.read(|state| state.colonies().count());
        if founded >= count {
            break;
        }
        let found = |after: usize| Proposal::Found {
            after: ColonyId(after as u32),
            members: hives.clone(),
            is_replicated: hives.len() > 1,
        };
        match registry.propose((founded..count).map(found).collect()).await {
            Ok(decisions) => registry.wait(decisions.last().map_or(0, |decision| decision.index())).await,
            Err(_) => node.platform.sleep(RETRY).await,
        }
    }
    let at = hives.iter().position(|hive| *hive == node.me.hive).unwrap_or_default();
    (at * logs..(at + 1) * logs).map(|colony| ColonyId(colony as u32 + 1)).collect()
}

type Log = (Arc<dyn Journal>, LogState);

/// Makes the groups of the colonies that this hive leads first, and begins to lead them.
async fn take(
    node: &Arc<Node>,
    members: &[MemberId],
    (registry, replica): (&dyn Registry, &Decisions),
    colonies: &[ColonyId],
    offices: &Offices,
) -> Result<Vec<Log>, ClusterError> {
    let mut logs: Vec<Log> = Vec::new();
    for colony in colonies {
        let group = loop {
            if let Some(group) = node.group(GroupId(colony.0)) {
                break group;
            }
            node.platform.sleep(RETRY).await
        };
        let Some(state) = group.colony.clone() else { continue };
        let exists = replica.read(|state| state.colony(*colony).is_some_and(|entry| entry.leader.is_some()));
        if !exists {
            group.found(members.iter().copied()).await?
        }
        let (term, state) = loop {
            let term = group.lead(node, &state).await;
            let leads = || {
                let leadership = group.leadership();
                leadership.is_here && leadership.term == term
            };
            let leader = Proposal::Leader { colony: *colony, term, hive: node.me.hive };
            let knows = || {
                replica.read(|state| {
                    state
                        .colony(*colony)
                        .is_some_and(|entry| (entry.term, entry.leader) == (term, Some(node.me.hive)))
                })
            };
            // another member may be elected meanwhile; then this one has to lead in a later term
            while leads() && !knows() {
                match registry.propose(vec![leader.clone()]).await {
                    Ok(decisions) => {
                        registry.wait(decisions.last().map_or(0, |decision| decision.index())).await
                    }
                    Err(_) => node.platform.sleep(RETRY).await,
                }
            }
            let (_, state) = state.state();
            if leads() && state.last.term() == term {
                break (term, state);
            }
        };
        let (journal, office) = RaftJournal::new(node, &group, term, state.last);
        offices.lock().insert(*colony, office);
        logs.push((journal, state))
    }
    Ok(logs)
}

/// Becomes a member of the group of each colony that the registry lists with this hive. Runs until the node stops.
async fn keep(node: Arc<Node>, replica: Arc<Decisions>, offices: Offices) {
    let mut indexes = replica.indexes();
    loop {
        indexes.borrow_and_update();
        let missing: Vec<ColonyId> = replica.read(|state| {
            let here =
                state.colonies().filter(|(_, entry)| !entry.is_dead && entry.members.contains(&node.me.hive));
            here.map(|(colony, _)| colony).filter(|colony| node.group(GroupId(colony.0)).is_none()).collect()
        });
        for colony in missing {
            let state = Arc::new(Colony::default());
            match Group::start(&node, GroupId(colony.0), state.clone(), Some(state.clone())).await {
                Ok(group) => {
                    let (node, offices) = (node.clone(), offices.clone());
                    node.clone().spawn(async move {
                        let mut hives = node.hive.subscribe();
                        // fails if the node is gone
                        let _ = hives.wait_for(Option::is_some).await;
                        let office = offices.lock().remove(&colony);
                        follow(node, group, state, office).await
                    })
                }
                Err(error) => {
                    tracing::error!(colony = colony.0, %error, "this hive does not replicate a colony")
                }
            }
        }
        if indexes.changed().await.is_err() {
            return;
        }
    }
}

/// Stops the hive when the registry says that its incarnation is dead: its lane has ended, and nobody takes its messages. Ends the
/// hive's part of the cluster when the hive stops, for this or any other reason: it would be trusted, and lead colonies for which
/// it has no hive.
async fn watch_life(
    node: Arc<Node>,
    hive: Hive,
    replica: Arc<Decisions>,
    incarnation: Incarnation,
    mut late: Late,
) {
    let grace = tokio::select! {
        biased;
        () = hive.stopping() => {
            leave(&node).await;
            // it ends with the shorter grace period, which is that of the stop that has begun
            Duration::MAX
        }
        () = is_declared_dead(&node, &replica, incarnation) => {
            tracing::error!("the other hives have declared this one dead; it stops");
            Duration::ZERO
        }
        why = late.refusal() => {
            tracing::error!(%why, "this hive may not take part; it stops");
            Duration::ZERO
        }
        () = disk_failure(&node) => {
            tracing::error!("the log of this hive has failed; it stops");
            Duration::ZERO
        }
    };
    hive.stop(grace).await;
    end_soon(&node)
}

/// Completes when this hive has heard no majority for [`CUT_OFF_FOR`].
async fn is_cut_off(node: &Node) {
    let mut since = node.platform.now();
    loop {
        let now = node.platform.now();
        let heard = node.options.peers.iter().filter(|peer| node.hearing.trusts(**peer, now)).count();
        if (heard + 1) * 2 > node.options.peers.len() + 1 {
            since = now
        } else if now >= since + CUT_OFF_FOR {
            return;
        }
        node.platform.sleep(RETRY).await
    }
}

async fn disk_failure(node: &Node) {
    match &node.disk {
        Some(disk) => disk.0.failure().await,
        None => std::future::pending().await,
    }
}

async fn is_declared_dead(node: &Node, replica: &Decisions, incarnation: Incarnation) {
    let mut indexes = replica.indexes();
    loop {
        indexes.borrow_and_update();
        let is_dead = replica.read(|state| {
            state.hive(node.me.hive).is_none_or(|entry| entry.incarnation != incarnation || entry.is_dead())
        });
        // an error says that the replica is gone
        if is_dead || indexes.changed().await.is_err() {
            return;
        }
    }
}
