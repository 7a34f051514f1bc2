//! Logs which flows the node app withdraws from a switch on its own initiative, and why.

use crate::object::{FlowKey, FoundFlow, NodeId, Owner};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Maximum number of owners named in one log line.
const OWNERS_MAX: usize = 8;

/// The reason why the node app withdraws or replaces a flow found in a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reason {
    /// The flow has no timeout, and no app has requested it.
    Unclaimed,
    /// The flow uses a port that is down or missing, and its app adopts its flows.
    Stray,
    /// The soft flow has the same priority and match as an intended flow, which is installed in its place.
    Replaced,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Reason::Unclaimed => {
                "they have no timeout, and no app has requested them since the switch joined"
            }
            Reason::Stray => "they use a port that is down, and their app adopts its flows",
            Reason::Replaced => "intended flows with the same priority and match replace them",
        })
    }
}

/// The flows withdrawn or replaced because of one part of a read.
#[derive(Debug, Default)]
pub(super) struct Withdrawals(BTreeMap<Reason, Group>);

/// The flows withdrawn for one reason.
#[derive(Debug)]
struct Group {
    count: u64,
    /// Some of the owners, at most [`OWNERS_MAX`].
    owners: BTreeSet<Owner>,
    /// The first flow.
    first: FlowKey,
}

impl Withdrawals {
    pub(super) fn add(&mut self, reason: Reason, owner: Owner, found: &FoundFlow) {
        let new = || Group { count: 0, owners: BTreeSet::new(), first: found.key() };
        let group = self.0.entry(reason).or_insert_with(new);

        group.count += 1;
        if group.owners.len() < OWNERS_MAX {
            group.owners.insert(owner);
        }
    }

    /// Writes one log line for each reason, however many flows
    /// there are, because a switch may report any number of flows.
    pub(super) fn log(&self, node: NodeId) {
        for (reason, Group { count, owners, first: (priority, matching) }) in &self.0 {
            // the same format in which `beehive flows` shows the owner of a flow if the app is not running
            let owners: Vec<String> = owners.iter().map(|owner| format!("#{:08x}", owner.number())).collect();
            let owners = owners.join(" ");
            tracing::info!(%node, flows = count, %reason, owners, priority, ?matching, "withdrawing flows");
        }
    }
}
