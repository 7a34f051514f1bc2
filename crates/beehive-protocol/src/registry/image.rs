//! The registry's state as bytes. Equal states have equal bytes, and a state that breaks an invariant is not decoded.

use super::{Aim, AppEntry, BeeEntry, ColonyEntry, HiveEntry, RegistryState};
use crate::limits::{COLONY_MEMBERS_MAX, REGISTRY_NUMBER_MAX, RESERVED_IDS_MAX};
use crate::{AppId, BeeId, CellId, ColonyId, Epoch, HiveId, Incarnation};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// The canonical form of [`RegistryState`], which is used to encode and compare it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Image {
    index: u64,
    newest: u64,
    hives: BTreeMap<HiveId, HiveEntry>,
    colonies: Vec<ColonyEntry>,
    apps: BTreeMap<AppId, AppEntry>,
    reserved: BTreeMap<BeeId, ColonyId>,
    bees: BTreeMap<BeeId, BeeImage>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BeeImage {
    app: AppId,
    colony: ColonyId,
    epoch: Epoch,
    aim: Option<Aim>,
    /// The numbers of its lanes, beginning with the one on which it sends. The others are in ascending order.
    lanes: Vec<u64>,
    /// Its cells, in ascending order.
    cells: Vec<CellId>,
}

impl From<&RegistryState> for Image {
    fn from(state: &RegistryState) -> Image {
        let image = |bee: BeeId| {
            let BeeEntry { app, colony, epoch, aim, .. } = state.bee(bee)?;
            let current = state.lanes.current(bee).unwrap_or(bee.0);
            let first = state.owners.get(bee).filter(|owner| owner.has_first_lane).map(|_| bee.0);
            let mut others: Vec<u64> = state.lanes.of(bee).map(|(number, _)| number).chain(first).collect();
            others.retain(|number| *number != current);
            others.sort_unstable();
            let mut cells: Vec<CellId> = state.cells_of(bee).collect();
            cells.sort_unstable();
            let lanes = [vec![current], others].concat();
            Some((bee, BeeImage { app, colony, epoch, aim, lanes, cells }))
        };
        Image {
            index: state.index,
            newest: state.newest,
            hives: state.hives.clone(),
            colonies: state.colonies.clone(),
            apps: state.apps.clone(),
            reserved: state.reserved.clone(),
            bees: state.owners.all().filter_map(|owner| image(owner.bee)).collect(),
        }
    }
}

/// Returns an error unless the condition holds.
fn must(holds: bool, why: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(why) }
}

fn is_ascending<T: Ord>(all: &[T]) -> bool {
    all.is_sorted_by(|a, b| a < b)
}

impl Image {
    fn living(&self, colony: ColonyId) -> Option<&ColonyEntry> {
        self.colonies.get((colony.0 as usize).checked_sub(1)?).filter(|entry| !entry.is_dead)
    }

    /// Checks the invariants of the registry.
    fn check(&self) -> Result<(), &'static str> {
        must(self.newest <= REGISTRY_NUMBER_MAX, "a number was assigned that does not fit into a lane")?;
        must(self.hives.values().all(|hive| hive.incarnation > Incarnation(0)), "a hive never joined")?;
        self.check_colonies()?;
        self.check_apps()?;
        self.check_reserved()?;
        self.check_bees()?;
        self.check_numbers()?;
        self.check_aims()
    }

    fn check_colonies(&self) -> Result<(), &'static str> {
        for colony in &self.colonies {
            let count = colony.members.len();
            must((1..=COLONY_MEMBERS_MAX).contains(&count), "a colony has no members, or too many")?;
            must(is_ascending(&colony.members), "the members of a colony are not in order")?;
            let leads =
                colony.leader.is_none_or(|leader| colony.members.contains(&leader) && colony.term > 0);
            must(leads, "a colony is led by a hive that is no member, or in no term")?;
            must(!colony.is_dead || colony.leader.is_none(), "a dead colony has a leader")?;
            must(!colony.is_dead || !colony.is_replicated, "a replicated colony is dead")?;
            must(colony.newest_reserved.0 <= self.newest, "a reserved id was not assigned")?;
        }
        Ok(())
    }

    fn check_apps(&self) -> Result<(), &'static str> {
        let names: BTreeSet<&str> = self.apps.values().map(|app| app.shapes.name.as_str()).collect();
        must(names.len() == self.apps.len(), "two apps have the same name")?;
        must(self.apps.values().all(|app| app.version > 0), "an app was never declared")
    }

    fn check_reserved(&self) -> Result<(), &'static str> {
        let mut counts: BTreeMap<ColonyId, u32> = BTreeMap::new();
        for (id, colony) in &self.reserved {
            let of = self.living(*colony).ok_or("an id is reserved for a colony that does not exist")?;
            must(*id <= of.newest_reserved, "a reserved id is newer than the newest one of its colony")?;
            *counts.entry(*colony).or_default() += 1;
        }
        must(counts.values().all(|count| *count <= RESERVED_IDS_MAX), "a colony has too many reserved ids")
    }

    fn check_bees(&self) -> Result<(), &'static str> {
        let mut owned = BTreeSet::new();
        for bee in self.bees.values() {
            must(self.living(bee.colony).is_some(), "a bee is in a colony that does not exist")?;
            must(!bee.cells.is_empty(), "a bee has no cells")?;
            must(is_ascending(&bee.cells), "the cells of a bee are not in order")?;
            must(bee.cells.iter().all(|cell| owned.insert((bee.app, *cell))), "a cell has two owners")?;
        }
        Ok(())
    }

    /// Checks that each number identifies only one thing: a lane of a hive, a reserved id, or a bee and its lanes.
    fn check_numbers(&self) -> Result<(), &'static str> {
        let mut used = BTreeSet::new();
        let lanes = self.hives.values().filter_map(|hive| hive.lane);
        for number in lanes.chain(self.reserved.keys().map(|id| id.0)) {
            must(used.insert(number), "a number is used twice")?
        }
        for (bee, image) in &self.bees {
            must(!image.lanes.is_empty(), "a bee has no lane")?;
            must(
                is_ascending(image.lanes.get(1..).unwrap_or_default()),
                "the lanes of a bee are not in order",
            )?;
            must(used.insert(bee.0), "a number is used twice")?;
            for number in image.lanes.iter().filter(|number| **number != bee.0) {
                must(used.insert(*number), "a number is used twice")?
            }
            let is_its_own = image.lanes.iter().filter(|number| **number == bee.0).count();
            must(is_its_own <= 1, "a number is used twice")?
        }
        let are_assigned = used.first().is_none_or(|number| *number > 0) && used.last() <= Some(&self.newest);
        must(are_assigned, "a number is used that was not assigned")
    }

    fn check_aims(&self) -> Result<(), &'static str> {
        let target = |bee: &BeeId| match self.bees.get(bee)?.aim? {
            Aim::Bee(target) => Some(target),
            Aim::Colony(_) => None,
        };
        for image in self.bees.values() {
            match image.aim {
                Some(Aim::Colony(colony)) => {
                    let is_another = self.living(colony).is_some() && colony != image.colony;
                    must(is_another, "a bee has to move to a colony that does not exist, or that has it")?
                }
                Some(Aim::Bee(target)) => {
                    let same_app = self.bees.get(&target).is_some_and(|target| target.app == image.app);
                    must(same_app, "a bee has to merge into one that does not exist, or is of another app")?
                }
                None => {}
            }
        }

        // each bee is visited once: a path ends at a bee whose path is known to end
        let mut ends = BTreeSet::new();
        for bee in self.bees.keys() {
            let mut path = BTreeSet::new();
            let mut at = *bee;
            while !ends.contains(&at) {
                must(path.insert(at), "aims form a cycle")?;
                match target(&at) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            ends.append(&mut path)
        }
        Ok(())
    }
}

impl TryFrom<Image> for RegistryState {
    type Error = &'static str;

    fn try_from(image: Image) -> Result<RegistryState, &'static str> {
        image.check()?;
        let Image { index, newest, hives, colonies, apps, reserved, bees } = image;
        let mut state =
            RegistryState { index, newest, hives, colonies, apps, reserved, ..RegistryState::default() };
        let mut aims = Vec::new();
        for (bee, BeeImage { app, colony, epoch, aim, lanes, cells }) in bees {
            state.owners.begin(bee, app, colony, epoch);
            state.owners.give(&cells, bee);
            if !lanes.contains(&bee.0) {
                state.owners.drop_first_lane(bee)
            }
            for (at, number) in lanes.into_iter().enumerate().filter(|(_, number)| *number != bee.0) {
                match at {
                    0 => state.lanes.take(bee, number),
                    _ => state.lanes.inherit(bee, number),
                }
            }
            aims.push((bee, aim))
        }
        aims.into_iter().for_each(|(bee, aim)| state.aims.set(bee, aim));
        Ok(state)
    }
}

impl RegistryState {
    /// Checks all invariants, which hold whatever is proposed. The time is proportional to the size of the state.
    ///
    /// # Errors
    ///
    /// Returns the first invariant that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        must(self.owners.agree(), "the tables of bees and cells differ")?;
        must(self.lanes.agree(), "the tables of lanes differ")?;
        must(self.aims.agree(), "the tables of aims differ")?;
        let image = Image::from(self);
        must(image.bees.len() == self.bees(), "a bee cannot be found")?;
        image.check()
    }
}

impl PartialEq for RegistryState {
    fn eq(&self, other: &RegistryState) -> bool {
        Image::from(self) == Image::from(other)
    }
}
impl Eq for RegistryState {}

impl Serialize for RegistryState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Image::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RegistryState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RegistryState, D::Error> {
        RegistryState::try_from(Image::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
