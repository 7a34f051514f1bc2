//! Hives, colonies and apps: who belongs to the cluster, and what it runs.

use super::{Aim, RegistryState};
use crate::limits::{COLONY_MEMBERS_MAX, RESERVED_IDS_MAX};
use crate::{AppId, AppShapes, BeeId, ColonyId, Decision, HiveId, Incarnation, LaneId, LoggedSettings};
use serde::{Deserialize, Serialize};

/// A hive that has joined the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiveEntry {
    /// Its latest incarnation.
    pub incarnation: Incarnation,
    /// The number of this incarnation's lane. `None` if the incarnation was declared dead.
    pub(super) lane: Option<u64>,
}

impl HiveEntry {
    /// Returns the lane of the hive's latest incarnation. Returns `None` if it was declared dead.
    pub fn lane(&self) -> Option<LaneId> {
        self.lane.map(LaneId::passing)
    }

    /// Checks whether the hive's latest incarnation was declared dead.
    pub const fn is_dead(&self) -> bool {
        self.lane.is_none()
    }
}

/// A colony.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColonyEntry {
    /// The hives that replicate the colony's log, in ascending order.
    pub members: Vec<HiveId>,
    /// Number of changes of the members.
    pub version: u32,
    /// Whether the colony survives the loss of a hive.
    pub is_replicated: bool,
    /// Whether the colony was declared dead.
    pub is_dead: bool,
    /// The term of the latest hint about the leader.
    pub term: u64,
    /// The hive that was the leader in this term. `None` if it is unknown, or no longer a member.
    pub leader: Option<HiveId>,
    /// The last id reserved for the colony, or zero.
    pub newest_reserved: BeeId,
}

/// An app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppEntry {
    /// Number of declarations of the app.
    pub version: u32,
    /// Number of hives on which a colony with bees of this app should be replicated.
    pub replication: u8,
    /// The app's name, and the shapes of its dictionaries.
    pub shapes: AppShapes,
    /// The app's settings. The version is 0 if it has none.
    pub settings: LoggedSettings,
}

/// Returns the members in ascending order. Returns `None` if there are none, or too many.
fn sorted(members: &[HiveId]) -> Option<Vec<HiveId>> {
    let mut members = members.to_vec();
    members.sort_unstable();
    members.dedup();
    (1..=COLONY_MEMBERS_MAX).contains(&members.len()).then_some(members)
}

impl RegistryState {
    pub(super) fn join(&mut self, hive: HiveId, after: Incarnation) -> Option<Decision> {
        let known = self.hives.get(&hive).map_or(Incarnation(0), |entry| entry.incarnation);
        if known != after || known.next() == known {
            return None;
        }
        let (incarnation, lane) = (after.next(), self.assign(1)?);
        self.hives.insert(hive, HiveEntry { incarnation, lane: Some(lane) });
        Some(Decision::Joined { incarnation, lane: LaneId::passing(lane), index: self.index })
    }

    pub(super) fn hive_dead(&mut self, hive: HiveId, incarnation: Incarnation) -> Option<()> {
        let entry = self.hives.get_mut(&hive).filter(|entry| entry.incarnation == incarnation)?;
        entry.lane.take().map(drop)
    }

    pub(super) fn found(
        &mut self,
        after: ColonyId,
        members: &[HiveId],
        is_replicated: bool,
    ) -> Option<Decision> {
        let newest = ColonyId(u32::try_from(self.colonies.len()).ok()?);
        let colony = ColonyId(newest.0.checked_add(1)?);
        if newest != after {
            return None;
        }
        self.colonies.push(ColonyEntry {
            members: sorted(members)?,
            version: 0,
            is_replicated,
            is_dead: false,
            term: 0,
            leader: None,
            newest_reserved: BeeId(0),
        });
        Some(Decision::Founded { colony, index: self.index })
    }

    pub(super) fn change_members(
        &mut self,
        (colony, version): (ColonyId, u32),
        members: &[HiveId],
        is_replicated: bool,
    ) -> Option<()> {
        let members = sorted(members)?;
        let entry = self.living_mut(colony).filter(|entry| entry.version.checked_add(1) == Some(version))?;
        entry.leader = entry.leader.filter(|leader| members.contains(leader));
        (entry.version, entry.members, entry.is_replicated) = (version, members, is_replicated);
        Some(())
    }

    pub(super) fn lead(&mut self, colony: ColonyId, term: u64, hive: HiveId) -> Option<()> {
        let entry = self.living_mut(colony)?;
        if term <= entry.term || !entry.members.contains(&hive) {
            return None;
        }
        (entry.term, entry.leader) = (term, Some(hive));
        Some(())
    }

    pub(super) fn colony_dead(&mut self, colony: ColonyId) -> Option<()> {
        let entry = self.living_mut(colony).filter(|entry| !entry.is_replicated)?;
        (entry.is_dead, entry.leader) = (true, None);

        let bees: Vec<BeeId> = self.bees_at(colony).collect();
        bees.into_iter().for_each(|bee| self.end(bee));
        self.aims.end_colony(colony);
        self.reserved.retain(|_, of| *of != colony);
        Some(())
    }

    pub(super) fn reserve(&mut self, colony: ColonyId, after: BeeId, count: u32) -> Option<Decision> {
        let unused = self.reserved.values().filter(|of| **of == colony).count();
        self.living_mut(colony).filter(|entry| entry.newest_reserved == after)?;
        if count == 0 || unused as u64 + u64::from(count) > u64::from(RESERVED_IDS_MAX) {
            return None;
        }

        let first = self.assign(u64::from(count))?;
        let ids = first..first + u64::from(count);
        self.living_mut(colony)?.newest_reserved = BeeId(ids.end - 1);
        self.reserved.extend(ids.map(|id| (BeeId(id), colony)));
        Some(Decision::Reserved { first: BeeId(first), count, index: self.index })
    }

    pub(super) fn declare(
        &mut self,
        app: AppId,
        (version, replication): (u32, u8),
        shapes: &AppShapes,
    ) -> Option<()> {
        let known = self.apps.get(&app);
        let is_next = known.map_or(0, |known| known.version).checked_add(1) == Some(version);
        let has_its_name = known.is_none_or(|known| known.shapes.name == shapes.name);
        let of_another =
            |(other, entry): (&AppId, &AppEntry)| *other != app && entry.shapes.name == shapes.name;
        if !is_next || !has_its_name || self.apps.iter().any(of_another) {
            return None;
        }
        let settings = known.map(|known| known.settings.clone()).unwrap_or_default();
        self.apps.insert(app, AppEntry { version, replication, shapes: shapes.clone(), settings });
        Some(())
    }

    pub(super) fn set_settings(&mut self, app: AppId, settings: &LoggedSettings) -> Option<()> {
        let entry = self.apps.get_mut(&app)?;
        if entry.settings.version.checked_add(1) != Some(settings.version) {
            return None;
        }
        entry.settings.clone_from(settings);
        Some(())
    }

    /// Returns a colony that exists and is not dead.
    pub(super) fn living(&self, colony: ColonyId) -> Option<&ColonyEntry> {
        self.colony(colony).filter(|entry| !entry.is_dead)
    }

    fn living_mut(&mut self, colony: ColonyId) -> Option<&mut ColonyEntry> {
        let at = (colony.0 as usize).checked_sub(1)?;
        self.colonies.get_mut(at).filter(|entry| !entry.is_dead)
    }

    /// Removes a bee, its cells, its lanes, its aim, and the aims at it.
    pub(super) fn end(&mut self, bee: BeeId) {
        self.owners.end(bee);
        self.lanes.end(bee);
        self.aims.end(bee)
    }

    pub(super) fn aim(&self, bee: BeeId) -> Option<Aim> {
        self.aims.get(bee)
    }
}
