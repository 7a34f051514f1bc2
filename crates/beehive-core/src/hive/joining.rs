//! The start of a hive in a cluster: it checks its place in the cluster, and brings its logs in line with the registry.

use crate::cell::{BeeId, HiveId};
use crate::hive::admission::outside_lanes::LaneNumbers;
use crate::hive::consensus::journal::{Journal, LaneId, LogState, Record};
use crate::hive::consensus::registry::{Decision, Proposal, Registry, RegistryState};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::links::network::Membership;
use crate::hive::ownership::queen::RETRY;
use crate::hive::start_error::StartError;
use crate::mutant::{Mutant, Mutation};
use beehive_protocol::{Leader, Step, steps};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A log, and the state from which the hive continues.
type Log = (Arc<dyn Journal>, LogState);

/// Records and proposals that a starting hive has yet to make.
#[derive(Default)]
pub(in crate::hive) struct Unsaid {
    /// The records, each with the position of its log. They are already in the states of the logs.
    pub(in crate::hive) records: Vec<(usize, Record)>,
    /// Changes that the previous process committed without telling the registry.
    pub(in crate::hive) proposals: Vec<Proposal>,
}

fn error(why: impl Into<String>) -> StartError {
    StartError::Cluster { why: why.into() }
}

/// Checks that the hive is where the registry says, and that its replica of the registry is as new as its logs.
pub(in crate::hive) fn check(
    hive: HiveId,
    membership: &Membership,
    logs: &[Log],
    of_apps: &[Vec<usize>],
    view: &RegistryState,
) -> Result<(), StartError> {
    if view.hive(hive).is_none_or(|known| known.incarnation != membership.incarnation) {
        return Err(error("the registry does not know this incarnation of the hive"));
    }
    if membership.colonies.len() != logs.len() {
        let (colonies, logs) = (membership.colonies.len(), logs.len());
        return Err(error(format!("the hive has {logs} logs, but {colonies} colonies")));
    }
    if of_apps.iter().any(Vec::is_empty) {
        return Err(error("an app is in memory only; in a cluster, every app needs a log"));
    }
    for (colony, (_, state)) in membership.colonies.iter().zip(logs) {
        if view.colony(*colony).is_none_or(|known| known.leader != Some(hive)) {
            return Err(error(format!("the hive is not the leader of colony {}", colony.0)));
        }
        if view.index() < state.known {
            let (index, known) = (view.index(), state.known);
            let why = format!("the replica of the registry is at {index}, but the log is based on {known}");
            return Err(error(why));
        }
    }
    Ok(())
}

/// Adds to the states of the logs what the registry has decided and the logs do not contain: new bees, and cells without
/// rows. Returns what the hive has to say.
pub(in crate::hive) fn reconcile(
    membership: &Membership,
    logs: &mut [Log],
    view: &RegistryState,
    mutation: Mutation,
) -> Unsaid {
    let mut unsaid = Unsaid::default();
    for (at, (colony, (_, log))) in membership.colonies.iter().zip(logs).enumerate() {
        for step in steps(Leader { colony: *colony, log, view }, &BTreeSet::new(), &[]) {
            match step {
                Step::Append(record @ (Record::Create { .. } | Record::Told { .. }))
                    if !mutation.breaks(Mutant::MissingNotCreated) =>
                {
                    log.carry_out(&record);
                    unsaid.records.push((at, record))
                }
                Step::Propose(proposal @ (Proposal::Fused { .. } | Proposal::Release { .. })) => {
                    unsaid.proposals.push(proposal)
                }
                // a running hive does not move bees to other hives yet
                _ => {}
            }
        }
        for ((_, bee), image) in &mut log.bees {
            image.cells.extend(view.cells_of(*bee))
        }
    }
    unsaid
}

/// Checks whether a lane that a log contains may belong to another hive that still uses it. Otherwise it belonged to an
/// earlier incarnation of some hive, or to a bee that has ended.
pub(in crate::hive) fn is_foreign(
    lane: LaneId,
    membership: &Membership,
    view: &RegistryState,
    mutation: Mutation,
) -> bool {
    if mutation.breaks(Mutant::RestartRetiresForeign) {
        return false;
    }
    if !lane.is_outside() {
        return !view.is_retired(lane);
    }
    let mut others = view.hives().filter_map(|(_, hive)| hive.lane()).filter(|own| *own != membership.lane);
    others.any(|of_hive| LaneNumbers::are_of(lane, of_hive))
}

/// Tells the registry what it was not told before the previous process ended. The next start records that it knows.
///
/// Until the replica knows it, the registry names bees that have ended. A sender that is told such a name must not take it
/// for a bee that the hive has yet to create.
pub(in crate::hive) fn tell(hive: &Arc<HiveInner>, registry: Arc<dyn Registry>, proposals: Vec<Proposal>) {
    let ended: Vec<BeeId> = proposals.iter().filter_map(ended_by).collect();
    hive.apps.read().iter().for_each(|app| app.note_ended(&ended));
    let waiting = hive.clone();
    hive.platform.spawn(Box::pin(async move {
        while !waiting.is_over() {
            let Ok(decisions) = registry.propose(proposals.clone()).await else {
                waiting.platform.sleep(RETRY).await;
                continue;
            };
            registry.wait(decisions.last().map_or(0, Decision::index)).await;
            return waiting.apps.read().iter().for_each(|app| app.forget_ended(&ended));
        }
    }))
}

/// Returns the bee whose end a proposal states.
fn ended_by(proposal: &Proposal) -> Option<BeeId> {
    match proposal {
        Proposal::Release { bee } | Proposal::Fused { from: bee, .. } => Some(*bee),
        _ => None,
    }
}
