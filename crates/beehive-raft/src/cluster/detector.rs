//! The failure detector: hives ping each other, and those that hear a hive no longer elect other leaders for its groups.
//!
//! There is one detector for each pair of hives, whatever the number of groups. A suspicion only begins elections: it removes no
//! member, and a hive that is suspected wrongly goes on as a follower. If nothing was heard from a hive for much longer, the
//! registry's leader declares it dead.

use super::folds::Decisions;
use super::frames::Ping;
use super::group::Group;
use super::node::Node;
use super::options::ClusterOptions;
use super::registry;
use super::transport::Channel;
use super::types::{GroupId, MemberId};
use crate::limits::{ELECTION_STAGGER, ELECTION_WITHIN};
use beehive_core::registry::{ColonyId, Proposal, RegistryState};
use beehive_core::{HiveId, Time};
use beehive_protocol::codec::encode_many;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// When the other hives were heard.
pub(crate) struct Hearing {
    suspect_after: Duration,
    peers: Mutex<BTreeMap<HiveId, Peer>>,
    suspicions: AtomicU64,
    /// The hives that a majority suspects.
    suspects: watch::Sender<BTreeSet<HiveId>>,
}

struct Peer {
    heard: Time,
    /// Whether it hears this hive. A connection that works in one direction only is none.
    hears: bool,
    /// The hives that it trusts.
    trusts: Vec<HiveId>,
    is_suspected: bool,
}

impl Peer {
    /// Checks whether it was heard lately, whether or not it hears this hive.
    fn is_audible(&self, now: Time, suspect_after: Duration) -> bool {
        now < self.heard + suspect_after
    }

    /// Checks whether it seems to live, and to hear this hive.
    fn is_trusted(&self, now: Time, suspect_after: Duration) -> bool {
        self.hears && self.is_audible(now, suspect_after)
    }
}

impl Hearing {
    pub(crate) fn new(options: &ClusterOptions, now: Time) -> Hearing {
        let peer = |hive: &HiveId| {
            (*hive, Peer { heard: now, hears: false, trusts: Vec::new(), is_suspected: true })
        };
        Hearing {
            suspect_after: options.suspect_after,
            peers: Mutex::new(options.peers.iter().map(peer).collect()),
            suspicions: AtomicU64::new(0),
            suspects: watch::Sender::default(),
        }
    }

    /// Returns the hives that this one and a majority of all suspect, and their changes.
    pub(crate) fn suspects(&self) -> watch::Receiver<BTreeSet<HiveId>> {
        self.suspects.subscribe()
    }

    /// A ping has come from a hive. `hears` says whether that hive hears this one, and `trusts` which hives it trusts.
    pub(crate) fn heard(&self, hive: HiveId, hears: bool, trusts: Vec<HiveId>, now: Time) {
        if let Some(peer) = self.peers.lock().get_mut(&hive) {
            (peer.heard, peer.hears, peer.trusts) = (now, hears, trusts)
        }
    }

    /// Checks whether a hive that is trusted itself has said last that it does not trust `other`.
    fn agrees(&self, hive: HiveId, other: HiveId) -> bool {
        self.peers.lock().get(&hive).is_some_and(|peer| !peer.trusts.contains(&other))
    }

    /// Checks whether a majority of the hives does not trust `other`: this one, and those that it trusts and that say so.
    fn is_agreed(&self, other: HiveId, now: Time) -> bool {
        let agree = self.trusted(now).into_iter().filter(|hive| self.agrees(*hive, other)).count();
        (1 + agree) * 2 > self.peers.lock().len() + 1
    }

    /// Returns the hives that are not trusted.
    fn distrusted(&self, now: Time) -> BTreeSet<HiveId> {
        let peers = self.peers.lock();
        let silent = peers.iter().filter(|(_, peer)| !peer.is_trusted(now, self.suspect_after));
        silent.map(|(hive, _)| *hive).collect()
    }

    /// Returns the hives that are trusted.
    fn trusted(&self, now: Time) -> Vec<HiveId> {
        let peers = self.peers.lock();
        let trusted = peers.iter().filter(|(_, peer)| peer.is_trusted(now, self.suspect_after));
        trusted.map(|(hive, _)| *hive).collect()
    }

    /// Checks whether a hive seems to live, and to hear this one.
    pub(crate) fn trusts(&self, hive: HiveId, now: Time) -> bool {
        self.peers.lock().get(&hive).is_some_and(|peer| peer.is_trusted(now, self.suspect_after))
    }

    /// Number of times that a hive that was trusted was suspected.
    pub(crate) fn suspicions(&self) -> u64 {
        self.suspicions.load(Ordering::Relaxed)
    }

    /// Returns the hives that were heard lately.
    fn audible(&self, now: Time) -> Vec<HiveId> {
        let peers = self.peers.lock();
        let heard = peers.iter().filter(|(_, peer)| peer.is_audible(now, self.suspect_after));
        heard.map(|(hive, _)| *hive).collect()
    }

    /// Returns the hives that were not heard since `time`.
    fn silent_since(&self, time: Time) -> Vec<HiveId> {
        let peers = self.peers.lock();
        peers.iter().filter(|(_, peer)| peer.heard < time).map(|(hive, _)| *hive).collect()
    }

    /// This hive did not run for some time before `now`, in which it could hear nobody.
    fn forgive(&self, time: Duration, now: Time) {
        // a ping that has waited since before may have been heard just now
        self.peers.lock().values_mut().for_each(|peer| peer.heard = (peer.heard + time).min(now))
    }

    /// Counts and logs new suspicions. Publishes those with which a majority of the hives agrees: a hive that has slept suspects
    /// all others for a moment.
    fn note(&self, now: Time) {
        for (hive, peer) in &mut *self.peers.lock() {
            let is_suspected = !peer.is_trusted(now, self.suspect_after);
            if is_suspected && !peer.is_suspected {
                self.suspicions.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    hive = hive.0,
                    "a hive is suspected: no ping has come from it, or none of this hive's has reached it"
                )
            }
            if !is_suspected && peer.is_suspected {
                tracing::info!(hive = hive.0, "a hive is heard again")
            }
            peer.is_suspected = is_suspected
        }
        let mut suspects = self.distrusted(now);
        suspects.retain(|hive| self.is_agreed(*hive, now));
        self.suspects.send_if_modified(|before| {
            let has_changed = *before != suspects;
            *before = suspects;
            has_changed
        });
    }
}

/// What the detector remembers about a group.
pub(super) struct Seen {
    /// The newest term, and whether it has a leader.
    term: (u64, bool),
    /// When this changed, or when a majority did not suspect the leader.
    since: Time,
    /// When this member last began an election.
    elected: Option<Time>,
}

/// Pings the other hives, and begins elections. Runs until the node stops.
pub(crate) async fn run(node: Arc<Node>, replica: Arc<Decisions>) {
    let every = node.options.ping_every;
    let mut groups: BTreeMap<GroupId, Seen> = BTreeMap::new();
    let (mut last, mut declared) = (node.platform.now(), node.platform.now());
    loop {
        let now = node.platform.now();
        let pause = now.since(last);
        if pause > every * 3 {
            node.hearing.forgive(pause - every, now)
        }
        last = now;

        let ping =
            Ping { life: node.me.life, heard: node.hearing.audible(now), trusted: node.hearing.trusted(now) };
        let packet = encode_many(&ping);
        for peer in &node.options.peers {
            node.transport.send(*peer, Channel::Detector, packet.clone())
        }
        node.hearing.note(now);
        if node.elects() {
            for group in begun(&node, &replica) {
                if must_elect(&node, &group, &mut groups, now) {
                    // fails if the group has failed
                    let _ = group.raft.trigger().elect(false).await;
                }
            }
            if !node.abstains() && now.since(declared) > node.options.dead_after / 10 {
                declared = now;
                declare(&node, &replica, now)
            }
        }
        node.platform.sleep(every).await
    }
}

/// Returns the groups that have had a leader. The hive that is to lead a colony first may still be starting; it would start in
/// vain if another one led the colony by then.
fn begun(node: &Node, replica: &Decisions) -> Vec<Arc<Group>> {
    let all: Vec<Arc<Group>> = node.groups.read().values().cloned().collect();
    let has_led = |state: &RegistryState, group: &Group| {
        group.id == GroupId::REGISTRY
            || state.colony(ColonyId(group.id.0)).is_some_and(|colony| colony.leader.is_some())
    };
    replica.read(|state| all.into_iter().filter(|group| has_led(state, group)).collect())
}

/// Decides whether this member begins an election now. The members begin one after the other, in an order that differs from
/// group to group, so that the groups of a dead hive go to different hives.
pub(super) fn must_elect(
    node: &Node,
    group: &Group,
    groups: &mut BTreeMap<GroupId, Seen>,
    now: Time,
) -> bool {
    let leadership = group.leadership();
    let term = (leadership.term, leadership.is_elected);
    let seen = groups.entry(group.id).or_insert(Seen { term, since: now, elected: None });
    let is_led = match leadership.is_elected {
        true => leadership.is_here || node.hearing.trusts(leadership.leader.hive, now),
        // an election is under way, or is due
        false => false,
    };
    if seen.term != term || is_led {
        (seen.term, seen.since) = (term, now)
    }
    if is_led {
        return false;
    }

    let voters = group.voters();
    let lives = |member: &MemberId| *member == node.me || node.hearing.trusts(member.hive, now);
    let living: Vec<MemberId> = voters.iter().copied().filter(lives).collect();
    // without a majority, an election would only raise the term
    if living.len() * 2 <= voters.len() {
        return false;
    }
    // So would an election that the others refuse because they trust the leader. A leader steps down when it meets a higher
    // term, so a hive that alone does not hear it would depose it when it hears it again
    let leader = leadership.leader.hive;
    let agrees = |member: &&MemberId| **member == node.me || node.hearing.agrees(member.hive, leader);
    // a leader that has returned knows that it leads no more, whoever trusts it
    let needs_agreement = leadership.is_elected && leader != node.me.hive;
    if needs_agreement && living.iter().filter(agrees).count() * 2 <= voters.len() {
        // the members wait for each other from the moment at which they agree
        seen.since = now;
        return false;
    }
    let Some(at) = living.iter().position(|member| *member == node.me) else { return false };
    let rank = (at + living.len() - group.id.0 as usize % living.len()) % living.len();
    let patience = match leadership.is_elected {
        true => ELECTION_STAGGER * rank as u32,
        false => ELECTION_WITHIN + ELECTION_STAGGER * rank as u32,
    };
    // a hive that stops elects only if its log is longer than those of the hives that stay: then they cannot win
    let waits = node.abstains() || now < seen.since + patience;
    let has_just = seen.elected.is_some_and(|at| now < at + ELECTION_WITHIN);
    if group.yields(now) || (!group.hurries(leadership.term) && (waits || has_just)) {
        return false;
    }
    seen.elected = Some(now);
    tracing::info!(
        group = group.id.0,
        term = leadership.term + 1,
        "this hive wants to lead a group whose leader is suspected"
    );
    true
}

/// Declares hives dead, if this one leads the registry and a majority of the registry's members is trusted and does not trust them
/// either.
///
/// A leader that was cut off from all others hears nobody, and goes on as the leader until it hears of a later term. It must not
/// declare the others dead, neither then nor when it hears them again. So it looks at what it hears now, proposes once, and only to
/// its own group.
fn declare(node: &Arc<Node>, replica: &Arc<Decisions>, now: Time) {
    let Some(group) = node.group(GroupId::REGISTRY).filter(|group| group.leadership().is_here) else {
        return;
    };
    let limit = Time::from_nanoseconds(
        now.as_nanoseconds().saturating_sub(node.options.dead_after.as_nanos() as u64),
    );
    let mut silent = node.hearing.silent_since(limit);
    silent.retain(|hive| node.hearing.is_agreed(*hive, now));
    let dead: Vec<Proposal> = replica.read(|state| {
        let living = silent.iter().filter_map(|hive| {
            let entry = state.hive(*hive).filter(|entry| !entry.is_dead())?;
            Some(Proposal::HiveDead { hive: *hive, incarnation: entry.incarnation })
        });
        living.collect()
    });
    if !dead.is_empty() {
        tracing::warn!(?dead, "hives are declared dead");
        let node = node.clone();
        node.clone().spawn(async move {
            // if it fails, and they are still silent, they are declared dead again
            let _ = registry::decide(&node, &group, &dead).await;
        })
    }
}
