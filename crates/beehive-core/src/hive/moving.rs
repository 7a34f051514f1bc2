//! Moves a bee to another hive, on request.

use crate::cell::{BeeId, HiveId};
use crate::hive::consensus::registry::{ColonyId, Decision, Proposal};
use crate::hive::dispatch::inner::Hive;
use beehive_protocol::{Epoch, RegistryState};

/// The reason why a bee was not moved.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveError {
    /// The hive is not in a cluster.
    NoCluster,
    /// The registry knows no such bee. It may have ended, or merged into another one.
    NoSuchBee,
    /// No colony is led by that hive.
    NoSuchHive,
    /// The bee is about to move or to merge, or other bees are about to merge into it. Try again later.
    Busy,
    /// The bee stays where it was, or goes elsewhere: the other hive could not be reached for too long, or a message needs
    /// the bee's cells together with those of other bees.
    Abandoned,
    /// The registry cannot decide, or the hive is stopping.
    Unavailable,
}

impl std::fmt::Display for MoveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MoveError::NoCluster => "the hive is not in a cluster",
            MoveError::NoSuchBee => "there is no such bee",
            MoveError::NoSuchHive => "no colony is led by that hive",
            MoveError::Busy => "the bee takes part in another move or merge",
            MoveError::Abandoned => "the bee was not moved: the move took too long, or the bee has to merge",
            MoveError::Unavailable => "the registry cannot decide, or the hive is stopping",
        })
    }
}

beehive_protocol::debug_is_display!(MoveError);

impl std::error::Error for MoveError {}

/// The entry of a bee in the registry, and the colony to which it is to move.
struct Standing {
    colony: ColonyId,
    epoch: Epoch,
    is_aimed: bool,
    to: Option<ColonyId>,
}

fn standing(view: &RegistryState, bee: BeeId, to: HiveId) -> Option<Standing> {
    let entry = view.bee(bee)?;
    let led = view.colonies().filter(|(_, colony)| !colony.is_dead && colony.leader == Some(to));
    let to = led.map(|(id, _)| id).min_by_key(|id| *id != entry.colony);
    Some(Standing { colony: entry.colony, epoch: entry.epoch, is_aimed: entry.aim.is_some(), to })
}

impl Hive {
    /// Moves a bee to another hive of the cluster. Any hive of the cluster may ask for this. Meanwhile the bee's senders keep
    /// their messages; no handler notices the move.
    ///
    /// The future completes when the registry says that the other hive has the bee. The move goes on if the future is
    /// dropped.
    ///
    /// # Errors
    ///
    /// See [`MoveError`].
    pub async fn move_bee(&self, bee: BeeId, to: HiveId) -> Result<(), MoveError> {
        let hive = self.inner();
        let Some(links) = &hive.links else { return Err(MoveError::NoCluster) };
        let registry = &links.registry;
        let look = || {
            let mut found = None;
            registry.read(&mut |view| found = standing(view, bee, to));
            found.ok_or(MoveError::NoSuchBee)
        };
        let Standing { colony, epoch, to: target, .. } = look()?;
        let Some(target) = target else { return Err(MoveError::NoSuchHive) };
        if target == colony {
            return Ok(());
        }
        let aim = Proposal::Aim { bee, epoch, colony: target };
        let decided = async {
            let decisions = registry.propose(vec![aim]).await.ok()?;
            let decision = decisions.into_iter().next()?;
            registry.wait(decision.index()).await;
            Some(decision)
        };
        let decided = tokio::select! {
            biased;
            decided = decided => decided,
            () = self.over() => None,
        };
        match decided {
            Some(Decision::Done { .. }) => {}
            Some(_) => return Err(MoveError::Busy),
            None => return Err(MoveError::Unavailable),
        }
        loop {
            let next = registry.index() + 1;
            match look()? {
                now if now.colony == target && now.epoch > epoch => return Ok(()),
                now if now.epoch > epoch || !now.is_aimed => return Err(MoveError::Abandoned),
                _ => {}
            }
            tokio::select! {
                biased;
                () = registry.wait(next) => {}
                () = self.over() => return Err(MoveError::Unavailable),
            }
        }
    }
}
