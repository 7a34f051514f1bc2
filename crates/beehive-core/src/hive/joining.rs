//! The start of a hive in a cluster: it checks its place in the cluster, and brings its logs in line with the registry.

use crate::cell::HiveId;
use crate::hive::consensus::journal::{Journal, LaneId, LogState, Record};
use crate::hive::consensus::registry::RegistryState;
use crate::hive::dispatch::turn::{LedLog, Link};
use crate::hive::links::network::Membership;
use crate::hive::ownership::foreign;
use crate::hive::start_error::StartError;
use crate::mutant::{Mutant, Mutation};
use beehive_protocol::{Leader, Step, steps};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A log, and the state from which the hive continues.
type Log = (Arc<dyn Journal>, LogState);

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
        return Err(error(format!(
            "the hive has {logs} logs, but {colonies} colonies: if the cluster keeps its logs, give the builder no other ones \
             (`Data::attach`, `journal`, `journals`, `journal_of`); a cluster's `folder` takes the place of `Data`"
        )));
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

/// Adds to the states of logs that the hive begins to lead what the registry has decided and the logs do not contain: new
/// bees, moved bees, and cells without rows. Returns the records that the hive has to append, each with its log.
pub(in crate::hive) fn reconcile(
    logs: &mut [LedLog],
    view: &RegistryState,
    mutation: Mutation,
) -> Vec<(Arc<Link>, Record)> {
    let mut unsaid = Vec::new();
    for (link, log) in logs {
        for step in steps(Leader { colony: link.colony(), log, view }, &BTreeSet::new(), &[]) {
            match step {
                Step::Append(record @ Record::Drop { .. }) => {
                    log.carry_out(&record);
                    unsaid.push((link.clone(), record))
                }
                Step::Append(record @ (Record::Create { .. } | Record::Told { .. }))
                    if !mutation.breaks(Mutant::MissingNotCreated) =>
                {
                    log.carry_out(&record);
                    unsaid.push((link.clone(), record))
                }
                // the reconciler takes the other steps while the hive runs
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
/// earlier incarnation of some hive, or to a bee that has ended. `own` is the lane that the registry has assigned to the hive.
pub(in crate::hive) fn is_foreign(
    lane: LaneId,
    own: LaneId,
    view: &RegistryState,
    mutation: Mutation,
) -> bool {
    !mutation.breaks(Mutant::RestartRetiresForeign) && foreign::is_foreign(lane, own, view)
}
