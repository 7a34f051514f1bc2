//! Proposals to the registry, and its decisions about them.

use crate::limits::{CLAIM_CELLS_MAX, COLONY_MEMBERS_MAX};
use crate::{
    AppId, AppShapes, BeeId, CellId, CellSet, ColonyId, Epoch, HiveId, Incarnation, LaneId, LoggedSettings,
};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt::Formatter;
use std::marker::PhantomData;

/// A question or a statement to the registry. In Raft's terms, it is a client command.
///
/// Every proposal is idempotent: if it is late or repeated, it changes nothing. A proposal that creates something or
/// moves a bee therefore states the state on which it is based, such as the bee's epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Proposal {
    /// Asks for one owner of all these cells.
    ///
    /// Cells without an owner go to the owner of the other cells or, if there is none, to a new bee of `colony`. If the
    /// cells have several owners, one of them becomes the root, and the others are aimed at it, which means that they
    /// must merge into it. The root is a bee of a replicated colony if there is one; of these, it is the bee with the
    /// most cells, and then the one with the lowest id.
    Claim {
        /// The app to which the cells belong.
        app: AppId,
        /// One message's cells, at most [`CLAIM_CELLS_MAX`].
        #[serde(deserialize_with = "cells_of_claim")]
        cells: CellSet,
        /// The colony of the bee, if the cells go to a new one.
        colony: ColonyId,
    },
    /// Asks for a bee to move to another colony. Takes effect if the bee has this epoch, is not aimed at anything, and
    /// no other bee is aimed at it.
    Aim {
        /// The bee.
        bee: BeeId,
        /// Its epoch.
        epoch: Epoch,
        /// The colony to which it should move.
        colony: ColonyId,
    },
    /// Moves a bee to another colony, which has a copy of it. The colony that the bee is about to leave proposes itself
    /// as the target to cancel the move. Only one of these proposals takes effect, because the epoch must be the bee's
    /// and increases.
    Commit {
        /// The bee.
        bee: BeeId,
        /// Its epoch before the move.
        epoch: Epoch,
        /// Its colony from now on.
        to: ColonyId,
    },
    /// States that two bees of one app merged: the cells and lanes of `from` now belong to `into`.
    Fused {
        /// The bee that ceased to exist.
        from: BeeId,
        /// The bee that took over the cells.
        into: BeeId,
    },
    /// Reserves ids, which a colony will use for bees that it splits off and for lanes. Takes effect if `after` is the
    /// last id reserved for the colony so far, or zero if there is none.
    Reserve {
        /// The colony.
        colony: ColonyId,
        /// The last id reserved for it.
        after: BeeId,
        /// Number of ids.
        count: u32,
    },
    /// States that a bee gave some of its cells to a new bee of the same colony. Takes effect if the id of the new bee is
    /// reserved.
    Split {
        /// The bee that had the cells.
        bee: BeeId,
        /// The cells. The bee has other cells as well.
        cells: Vec<CellId>,
        /// The new bee.
        new: BeeId,
    },
    /// States that a bee gave back all its cells. Its lanes end.
    Release {
        /// The bee that ceased to exist.
        bee: BeeId,
    },
    /// States that a bee sends on a different lane from now on. Takes effect if the number of the lane is a reserved
    /// id.
    Relane {
        /// The bee.
        bee: BeeId,
        /// The number of the lane.
        number: BeeId,
    },
    /// States that nothing on a lane is unhandled, and that nothing will be sent on it. Takes effect if the lane
    /// belongs to a bee that now sends on a different lane.
    Retire {
        /// The lane.
        lane: LaneId,
    },
    /// States that a hive starts, or that it continues after it was declared dead: it gets a new lane, and the lane of its
    /// previous incarnation ends.
    Join {
        /// The hive.
        hive: HiveId,
        /// Its incarnation so far, or zero if it has none.
        after: Incarnation,
    },
    /// Declares a hive dead: its lane ends. If the hive is alive nevertheless, it joins again.
    HiveDead {
        /// The hive.
        hive: HiveId,
        /// The incarnation that is dead.
        incarnation: Incarnation,
    },
    /// Creates a colony. Takes effect if `after` is the latest colony, or zero if there is none.
    Found {
        /// The latest colony.
        after: ColonyId,
        /// The hives that replicate the colony's log, at most [`COLONY_MEMBERS_MAX`].
        #[serde(deserialize_with = "members")]
        members: Vec<HiveId>,
        /// Whether the colony survives the loss of a hive.
        is_replicated: bool,
    },
    /// Changes the members of a colony.
    Members {
        /// The colony.
        colony: ColonyId,
        /// Number of changes of the members so far, including this one.
        version: u32,
        /// The hives that replicate the colony's log, at most [`COLONY_MEMBERS_MAX`].
        #[serde(deserialize_with = "members")]
        members: Vec<HiveId>,
        /// Whether the colony survives the loss of a hive.
        is_replicated: bool,
    },
    /// States which hive leads a colony. It is a hint: a leader may be deposed before the registry knows.
    Leader {
        /// The colony.
        colony: ColonyId,
        /// The term in which the hive leads. Hints of earlier terms have no effect.
        term: u64,
        /// The leader.
        hive: HiveId,
    },
    /// Declares a colony dead. Its bees vanish, and their cells have no owners. Has no effect on a replicated colony.
    ColonyDead {
        /// The colony.
        colony: ColonyId,
    },
    /// Declares an app, or a new version of it. An app keeps its name, and no two apps have the same one.
    App {
        /// The app.
        app: AppId,
        /// Number of declarations of the app so far, including this one.
        version: u32,
        /// Number of hives on which a colony with bees of this app should be replicated.
        replication: u8,
        /// The app's name, and the shapes of its dictionaries.
        shapes: AppShapes,
    },
    /// Changes the settings of a declared app. The version is the number of changes so far, including this one.
    Settings {
        /// The app.
        app: AppId,
        /// The settings.
        settings: LoggedSettings,
    },
}

/// The registry's answer to a proposal. It contains the registry's index, which is the number of proposals decided so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Decision {
    /// Answer to [`Proposal::Claim`].
    Owner {
        /// The bee that owns the cells, or that will own them once the other owners have merged into it.
        root: BeeId,
        /// The colony of this bee.
        colony: ColonyId,
        /// The epoch of this bee.
        epoch: Epoch,
        /// Whether the root is new. If so, the colony named in the claim hosts it.
        created: bool,
        /// Owners that must first merge into the root. Each of them is aimed at the root, either directly or through
        /// other bees.
        merging: Vec<BeeId>,
        /// The registry's index.
        index: u64,
    },
    /// The proposal took effect.
    Done {
        /// The registry's index.
        index: u64,
    },
    /// The proposal changed nothing: it was late, repeated, or not allowed in this state.
    Void {
        /// The registry's index.
        index: u64,
    },
    /// Answer to [`Proposal::Join`] if it took effect.
    Joined {
        /// The hive's incarnation.
        incarnation: Incarnation,
        /// The lane of this incarnation.
        lane: LaneId,
        /// The registry's index.
        index: u64,
    },
    /// Answer to [`Proposal::Found`] if it took effect.
    Founded {
        /// The new colony.
        colony: ColonyId,
        /// The registry's index.
        index: u64,
    },
    /// Answer to [`Proposal::Reserve`] if it took effect.
    Reserved {
        /// The first of the reserved ids. The others follow it.
        first: BeeId,
        /// Number of reserved ids.
        count: u32,
        /// The registry's index.
        index: u64,
    },
}

impl Decision {
    /// Returns the registry's index.
    pub const fn index(&self) -> u64 {
        match self {
            Decision::Owner { index, .. }
            | Decision::Done { index }
            | Decision::Void { index }
            | Decision::Joined { index, .. }
            | Decision::Founded { index, .. }
            | Decision::Reserved { index, .. } => *index,
        }
    }
}

/// Decodes a list. Reserves no memory for the number of items that the bytes claim, and refuses a list that is too long,
/// before it has decoded it.
struct AtMost<T> {
    max: usize,
    /// The limit, and what it limits.
    limit: &'static str,
    items: PhantomData<T>,
}

impl<'de, L: Default + Extend<L::Item> + IntoIterator<Item: Deserialize<'de>>> Visitor<'de> for AtMost<L> {
    type Value = L;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "at most {} {}", self.max, self.limit)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<L, A::Error> {
        let (mut list, mut count) = (L::default(), 0);
        while let Some(item) = items.next_element()? {
            count += 1;
            if count > self.max {
                return Err(A::Error::custom(format_args!("more than {} {}", self.max, self.limit)));
            }
            list.extend([item])
        }
        Ok(list)
    }
}

fn cells_of_claim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CellSet, D::Error> {
    let limit = "cells in a claim (`limits::CLAIM_CELLS_MAX`)";
    deserializer.deserialize_seq(AtMost { max: CLAIM_CELLS_MAX, limit, items: PhantomData })
}

fn members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HiveId>, D::Error> {
    let limit = "members of a colony (`limits::COLONY_MEMBERS_MAX`)";
    deserializer.deserialize_seq(AtMost { max: COLONY_MEMBERS_MAX, limit, items: PhantomData })
}
