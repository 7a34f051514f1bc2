//! The registry's state machine: which bee owns which cell, and where each bee is, for all apps and hives.
//!
//! [`RegistryState::apply`] decides one proposal. A local registry applies proposals immediately. A replicated registry
//! applies those committed by its log. Every proposal is idempotent: a late or repeated proposal changes nothing.
//!
//! ```text
//!   proposal.rs   what can be proposed, and what the registry answers
//!   members.rs    hives, colonies, apps, reserved ids: Join, HiveDead, Found, Members, Leader, ColonyDead, Reserve, ..
//!   claim.rs      Claim: who owns the cells of a message, which bees must merge for it
//!   changes.rs    Aim, Commit, Fused, Split, Release, Relane, Retire
//!   image.rs      the state as bytes, and the checks of a decoded state
//!     below them, data:
//!   owners.rs     bees and cells      aims.rs   targets of bees          lanes.rs   the lanes of bees
//!   slab.rs       entries that keep their positions, found by hash
//! ```
//!
//! Bees and lanes get their numbers from one counter, so no number is used twice. A bee's first lane has the bee's number.

mod aims;
mod changes;
mod claim;
mod image;
mod lanes;
mod members;
mod owners;
mod proposal;
mod slab;

pub use aims::Aim;
pub use members::{AppEntry, ColonyEntry, HiveEntry};
pub use proposal::{Decision, Proposal};

use crate::limits::REGISTRY_NUMBER_MAX;
use crate::{AppId, BeeId, CellId, ColonyId, Epoch, HiveId, LaneId};
use aims::Aims;
use lanes::Lanes;
use owners::{Owner, Owners};
use std::collections::BTreeMap;

/// The registry's state: hives, colonies, apps, bees with their cells and lanes, and pending changes.
///
/// Its encoding is canonical: equal states have equal bytes on every hive. The decoder checks the state's invariants,
/// and refuses bytes that violate them.
#[derive(Clone, Debug, Default)]
pub struct RegistryState {
    /// Number of proposals decided.
    index: u64,
    /// The highest number assigned to a bee or a lane so far.
    newest: u64,
    owners: Owners,
    lanes: Lanes,
    aims: Aims,
    /// The reserved ids that are not used yet, and the colony for which each one is reserved.
    reserved: BTreeMap<BeeId, ColonyId>,
    hives: BTreeMap<HiveId, HiveEntry>,
    /// All colonies that were ever founded. The first one has id 1.
    colonies: Vec<ColonyEntry>,
    apps: BTreeMap<AppId, AppEntry>,
}

/// The registry's data about a bee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeeEntry {
    /// The app whose cells it owns.
    pub app: AppId,
    /// The colony that has it.
    pub colony: ColonyId,
    /// Number of its moves. Of two copies of the bee, the one with this epoch is valid.
    pub epoch: Epoch,
    /// The colony or the bee to which it has to move, if any.
    pub aim: Option<Aim>,
    /// Number of its cells.
    pub cells: usize,
}

/// A bee that is restored from a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The bee.
    pub bee: BeeId,
    /// Its app.
    pub app: AppId,
    /// The colony whose log contains it.
    pub colony: ColonyId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The lanes that it inherited.
    pub lanes: Vec<LaneId>,
    /// Its cells.
    pub cells: Vec<CellId>,
}

impl RegistryState {
    /// Returns the registry of a hive without a cluster: there are `colonies` colonies, which are not replicated, and these
    /// bees. Numbers up to `newest` are not assigned again.
    ///
    /// If a cell or a lane is listed with two bees, it belongs to the first one.
    pub fn alone(colonies: u32, bees: impl IntoIterator<Item = Restored>, newest: u64) -> Self {
        let mut state = RegistryState { newest, ..RegistryState::default() };
        for after in 0..colonies {
            state.found(ColonyId(after), &[HiveId(0)], false);
        }

        for Restored { bee, app, colony, epoch, lanes, mut cells } in bees {
            cells.retain(|cell| state.owners.of(app, *cell).is_none());
            cells.sort_unstable();
            cells.dedup();
            if cells.is_empty() || bee.0 == 0 || state.owners.contains(bee) || state.living(colony).is_none()
            {
                continue;
            }
            let numbers = lanes.iter().filter_map(|lane| lane.number());
            state.newest = numbers.clone().chain([bee.0]).fold(state.newest, u64::max);
            state.owners.begin(bee, app, colony, epoch);
            state.owners.give(&cells, bee);
            for number in numbers {
                if number != bee.0 && state.lanes.bee_of(number).is_none() {
                    state.lanes.inherit(bee, number)
                }
            }
        }
        state
    }

    /// Decides a proposal.
    pub fn apply(&mut self, proposal: &Proposal) -> Decision {
        self.index += 1;
        let index = self.index;
        self.decide(proposal).unwrap_or(Decision::Void { index })
    }

    /// Returns `None` if the proposal has no effect.
    fn decide(&mut self, proposal: &Proposal) -> Option<Decision> {
        match proposal {
            Proposal::Claim { app, cells, colony } => return self.claim(*app, cells, *colony),
            Proposal::Aim { bee, epoch, colony } => self.aim_at(*bee, *epoch, *colony),
            Proposal::Commit { bee, epoch, to } => self.commit(*bee, *epoch, *to),
            Proposal::Fused { from, into } => self.fused(*from, *into),
            Proposal::Reserve { colony, after, count } => return self.reserve(*colony, *after, *count),
            Proposal::Split { bee, cells, new } => self.split(*bee, cells, *new),
            Proposal::Release { bee } => self.release(*bee),
            Proposal::Relane { bee, number } => self.relane(*bee, *number),
            Proposal::Retire { lane } => self.retire(*lane),
            Proposal::Join { hive, after } => return self.join(*hive, *after),
            Proposal::HiveDead { hive, incarnation } => self.hive_dead(*hive, *incarnation),
            Proposal::Found { after, members, is_replicated } => {
                return self.found(*after, members, *is_replicated);
            }
            Proposal::Members { colony, version, members, is_replicated } => {
                self.change_members((*colony, *version), members, *is_replicated)
            }
            Proposal::Leader { colony, term, hive } => self.lead(*colony, *term, *hive),
            Proposal::ColonyDead { colony } => self.colony_dead(*colony),
            Proposal::App { app, version, replication, shapes } => {
                self.declare(*app, (*version, *replication), shapes)
            }
            Proposal::Settings { app, settings } => self.set_settings(*app, settings),
        }?;
        Some(Decision::Done { index: self.index })
    }

    /// Assigns `count` numbers, and returns the first one.
    fn assign(&mut self, count: u64) -> Option<u64> {
        let last = self.newest.checked_add(count).filter(|last| *last <= REGISTRY_NUMBER_MAX)?;
        let first = self.newest + 1;
        self.newest = last;
        Some(first)
    }

    /// Returns the number of decided proposals, which is the index of the last one in the registry's log.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Returns the number of bees.
    pub fn bees(&self) -> usize {
        self.owners.bee_count()
    }

    /// Returns the number of owned cells.
    pub fn cells(&self) -> usize {
        self.owners.cell_count()
    }

    /// Returns the bee that owns a cell.
    pub fn owner(&self, app: AppId, cell: CellId) -> Option<BeeId> {
        self.owners.of(app, cell).map(|owner| owner.bee)
    }

    /// Returns a bee.
    pub fn bee(&self, bee: BeeId) -> Option<BeeEntry> {
        let Owner { app, colony, epoch, cells, .. } = self.owners.get(bee)?;
        Some(BeeEntry { app, colony, epoch, aim: self.aim(bee), cells: cells as usize })
    }

    /// Returns the cells of a bee, in no particular order.
    pub fn cells_of(&self, bee: BeeId) -> impl Iterator<Item = CellId> {
        self.owners.cells_of(bee)
    }

    /// Returns the bees of a colony, in ascending order. Visits all bees.
    pub fn bees_at(&self, colony: ColonyId) -> impl Iterator<Item = BeeId> + use<> {
        let at = self.owners.all().filter(|owner| owner.colony == colony);
        let mut bees: Vec<BeeId> = at.map(|owner| owner.bee).collect();
        bees.sort_unstable();
        bees.into_iter()
    }

    /// Returns the bees of a colony that have an aim, in ascending order. Visits all aims.
    pub fn aimed_at(&self, colony: ColonyId) -> impl Iterator<Item = BeeId> {
        self.aims.all().filter(move |bee| self.owners.get(*bee).is_some_and(|owner| owner.colony == colony))
    }

    /// Returns the bee into which a bee will ultimately merge. This is the bee itself if it is not aimed at another
    /// one.
    pub fn root(&self, bee: BeeId) -> BeeId {
        self.aims.root(bee)
    }

    /// Checks whether an id is reserved and not used yet.
    pub fn is_reserved(&self, id: BeeId) -> bool {
        self.reserved.contains_key(&id)
    }

    /// Returns the ids that are reserved for a colony and not used yet, in ascending order. Visits all reserved ids.
    pub fn reserved(&self, colony: ColonyId) -> impl Iterator<Item = BeeId> {
        self.reserved.iter().filter(move |(_, of)| **of == colony).map(|(id, _)| *id)
    }

    /// Returns the lanes of a bee: the one on which it sends, and those that have not ended yet.
    pub fn lanes_of(&self, bee: BeeId) -> impl Iterator<Item = LaneId> {
        let owner = self.owners.get(bee);
        let first = owner.filter(|owner| owner.has_first_lane).map(|_| bee.0);
        let numbers = self.lanes.of(bee).map(|(number, _)| number).chain(first);
        numbers.filter_map(move |number| Some(LaneId::of_bee(owner?.app, BeeId(number))))
    }

    /// Returns the lane on which a bee sends.
    pub fn lane_of(&self, bee: BeeId) -> Option<LaneId> {
        let owner = self.owners.get(bee)?;
        Some(LaneId::of_bee(owner.app, BeeId(self.lanes.current(bee).unwrap_or(bee.0))))
    }

    /// Returns the bee that has a lane.
    pub fn bee_of_lane(&self, lane: LaneId) -> Option<BeeId> {
        let (app, number) = lane.bee()?;
        let first = self.owners.get(number).filter(|owner| owner.has_first_lane);
        let owner = first.or_else(|| self.owners.get(self.lanes.bee_of(number.0)?))?;
        (owner.app == app).then_some(owner.bee)
    }

    /// Checks whether the registry once assigned a lane that no longer belongs to any sender. Nothing will be sent on
    /// such a lane again, so receivers may forget it. An unknown lane is not retired.
    pub fn is_retired(&self, lane: LaneId) -> bool {
        let Some(number) = lane.number().filter(|number| *number <= self.newest) else { return false };
        let is_listed = match lane.is_outside() {
            true => self.hives.values().any(|hive| hive.lane == Some(number)),
            false => self.bee_of_lane(lane).is_some(),
        };
        !is_listed && !self.is_reserved(BeeId(number))
    }

    /// Returns a hive that has joined.
    pub fn hive(&self, hive: HiveId) -> Option<&HiveEntry> {
        self.hives.get(&hive)
    }

    /// Returns all hives that have joined.
    pub fn hives(&self) -> impl Iterator<Item = (HiveId, &HiveEntry)> {
        self.hives.iter().map(|(hive, entry)| (*hive, entry))
    }

    /// Returns a colony.
    pub fn colony(&self, colony: ColonyId) -> Option<&ColonyEntry> {
        self.colonies.get((colony.0 as usize).checked_sub(1)?)
    }

    /// Returns all colonies, including the dead ones.
    pub fn colonies(&self) -> impl Iterator<Item = (ColonyId, &ColonyEntry)> {
        (1..).map(ColonyId).zip(&self.colonies)
    }

    /// Returns a declared app.
    pub fn app(&self, app: AppId) -> Option<&AppEntry> {
        self.apps.get(&app)
    }

    /// Returns all declared apps.
    pub fn apps(&self) -> impl Iterator<Item = (AppId, &AppEntry)> {
        self.apps.iter().map(|(app, entry)| (*app, entry))
    }
}
