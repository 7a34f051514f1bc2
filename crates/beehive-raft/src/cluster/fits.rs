//! The check that a program can read what is in the logs of its hive, before the hive takes part in the cluster.
//!
//! A hive that begins to lead a colony checks the colony's state, too. That is too late after all hives were started with a program
//! that has another type for some dictionary: only the hives that happen to lead old values would stop, and the others would write
//! new ones, which the earlier program cannot read. So each hive checks its replicas of all colonies, before it votes or answers
//! anything. What was acknowledged is in the logs of a majority, so no majority starts with the wrong program.

use super::folds::Colony;
use super::machine::Fold;
use super::node::Node;
use super::options::ClusterError;
use super::types::GroupId;
use beehive_core::StartError;
use beehive_core::journal::Shapes;
use openraft::EntryPayload;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Checks all replicas in the folder of this hive, on a thread that may block.
///
/// # Errors
///
/// Returns [`StartError::Log`] for the first colony whose state the program cannot read.
pub(crate) async fn check(node: &Arc<Node>, shapes: Shapes) -> Result<(), ClusterError> {
    let (sender, checked) = oneshot::channel();
    let of_thread = node.clone();
    node.platform.spawn_blocking(Box::new(move || {
        // if the start was given up, nobody waits
        let _ = sender.send(check_all(&of_thread, &shapes));
    }));
    checked.await.unwrap_or_else(|_| Err(ClusterError::Group { why: "the program ends".to_string() }))
}

fn check_all(node: &Node, shapes: &Shapes) -> Result<(), ClusterError> {
    let groups = node.disk.iter().flat_map(|disk| disk.0.positions().into_keys());
    for group in groups.filter(|group| *group != GroupId::REGISTRY) {
        let colony = replay(node, group).map_err(|why| ClusterError::Group { why })?;
        colony.read(|state| shapes.read(state)).map_err(|why| {
            ClusterError::Hive(StartError::Log { why: format!("in colony {}, {why}", group.0) })
        })?
    }
    Ok(())
}

/// Returns a replica with all entries in the log. Not all of them may be committed; which ones are is not known before a
/// majority runs.
fn replay(node: &Node, group: GroupId) -> Result<Colony, String> {
    let (colony, store) = (Colony::default(), node.store(group));
    let mut next = 0;
    if let Some(snapshot) = store.snapshot() {
        let last = snapshot.meta.last_log_id.map_or(0, |last| last.index);
        colony.load(&snapshot.snapshot, last)?;
        next = last + 1
    }
    store.read(|log| {
        log.range(next..).try_for_each(|entry| {
            let index = entry.log_id.index;
            match &entry.payload {
                EntryPayload::Blank => colony.begin_term(*entry.log_id.leader_id, index),
                EntryPayload::Normal(command) => colony.apply(command, index).map(drop),
                EntryPayload::Membership(_) => Ok(()),
            }
        })
    })?;
    Ok(colony)
}
