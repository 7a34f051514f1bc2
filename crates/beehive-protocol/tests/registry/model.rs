//! The rules of the registry, written down as directly as possible: every rule looks at everything.

use beehive_protocol::limits::{COLONY_MEMBERS_MAX, RESERVED_IDS_MAX};
use beehive_protocol::{
    Aim, AppId, BeeId, CellId, ColonyId, Decision, Epoch, HiveId, Incarnation, LaneId, Proposal,
    RegistryState,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub(crate) struct Bee {
    pub(crate) app: AppId,
    pub(crate) colony: ColonyId,
    pub(crate) epoch: Epoch,
    pub(crate) aim: Option<Aim>,
    pub(crate) lanes: BTreeSet<u64>,
    pub(crate) current: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Colony {
    pub(crate) members: BTreeSet<HiveId>,
    pub(crate) version: u32,
    pub(crate) is_replicated: bool,
    pub(crate) is_dead: bool,
    pub(crate) term: u64,
    pub(crate) leader: Option<HiveId>,
    pub(crate) newest_reserved: BeeId,
}

#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) version: u32,
    pub(crate) replication: u8,
    pub(crate) name: String,
    pub(crate) settings: u32,
}

/// A lane that was given to a hive.
#[derive(Clone, Debug)]
struct HiveLane {
    number: u64,
    hive: HiveId,
    incarnation: Incarnation,
    was_declared_dead: bool,
}

#[derive(Default)]
pub(crate) struct Model {
    index: u64,
    pub(crate) newest: u64,
    pub(crate) cells: BTreeMap<(AppId, CellId), BeeId>,
    pub(crate) bees: BTreeMap<BeeId, Bee>,
    pub(crate) reserved: BTreeMap<BeeId, ColonyId>,
    pub(crate) hives: BTreeMap<HiveId, Incarnation>,
    pub(crate) colonies: Vec<Colony>,
    pub(crate) apps: BTreeMap<AppId, App>,
    hive_lanes: Vec<HiveLane>,
    /// I8: the epochs that bees have had.
    epochs: BTreeSet<(BeeId, Epoch)>,
    /// Numbers of lanes that ended.
    pub(crate) retired: Vec<(u64, AppId)>,
}

impl Model {
    fn assign(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    pub(crate) fn living(&mut self, colony: ColonyId) -> Option<&mut Colony> {
        let at = (colony.0 as usize).checked_sub(1)?;
        self.colonies.get_mut(at).filter(|colony| !colony.is_dead)
    }

    pub(crate) fn size(&self, bee: BeeId) -> usize {
        self.cells.values().filter(|owner| **owner == bee).count()
    }

    pub(crate) fn root(&self, mut bee: BeeId) -> BeeId {
        let mut steps = 0;
        while let Some(Aim::Bee(next)) = self.bees[&bee].aim {
            bee = next;
            steps += 1;
            assert!(steps <= self.bees.len(), "aims form a cycle");
        }
        bee
    }

    fn begin(&mut self, bee: u64, app: AppId, colony: ColonyId) {
        let new = Bee { app, colony, epoch: Epoch(0), aim: None, lanes: BTreeSet::from([bee]), current: bee };
        assert!(self.bees.insert(BeeId(bee), new).is_none());
        assert!(self.epochs.insert((BeeId(bee), Epoch(0))), "an id is used twice");
    }

    fn end(&mut self, bee: BeeId) {
        let gone = self.bees.remove(&bee).unwrap();
        self.retired.extend(gone.lanes.iter().map(|lane| (*lane, gone.app)));
        self.cells.retain(|_, owner| *owner != bee);
        for other in self.bees.values_mut() {
            if other.aim == Some(Aim::Bee(bee)) {
                other.aim = None
            }
        }
    }

    /// Returns what the registry must decide.
    pub(crate) fn apply(&mut self, proposal: &Proposal) -> Decision {
        self.index += 1;
        let index = self.index;
        self.decide(proposal).unwrap_or(Decision::Void { index })
    }

    fn decide(&mut self, proposal: &Proposal) -> Option<Decision> {
        let index = self.index;
        match proposal {
            Proposal::Claim { app, cells, colony } => return self.claim(*app, cells, *colony),
            Proposal::Aim { bee, epoch, colony } => {
                self.living(*colony)?;
                let is_target = self.bees.values().any(|other| other.aim == Some(Aim::Bee(*bee)));
                let bee = self.bees.get_mut(bee)?;
                if bee.epoch != *epoch || bee.aim.is_some() || is_target || bee.colony == *colony {
                    return None;
                }
                bee.aim = Some(Aim::Colony(*colony))
            }
            Proposal::Commit { bee, epoch, to } => {
                self.living(*to)?;
                let known = self.bees.get_mut(bee).filter(|known| known.epoch == *epoch)?;
                known.epoch = Epoch(epoch.0 + 1);
                known.colony = *to;
                if matches!(known.aim, Some(Aim::Colony(_))) {
                    known.aim = None
                }
                assert!(self.epochs.insert((*bee, Epoch(epoch.0 + 1))), "an epoch is committed twice");
            }
            Proposal::Fused { from, into } => self.fused(*from, *into)?,
            Proposal::Reserve { colony, after, count } => {
                let unused = self.reserved.values().filter(|of| *of == colony).count();
                let known = self.living(*colony)?;
                if known.newest_reserved != *after || *count == 0 || unused as u32 + count > RESERVED_IDS_MAX
                {
                    return None;
                }
                let first = self.newest + 1;
                for _ in 0..*count {
                    let id = self.assign();
                    self.reserved.insert(BeeId(id), *colony);
                }
                let newest = BeeId(self.newest);
                self.living(*colony)?.newest_reserved = newest;
                return Some(Decision::Reserved { first: BeeId(first), count: *count, index });
            }
            Proposal::Split { bee, cells, new } => {
                let Bee { app, colony, .. } = self.bees.get(bee)?.clone();
                let given: BTreeSet<CellId> = cells.iter().copied().collect();
                let all_owned = given.iter().all(|cell| self.cells.get(&(app, *cell)) == Some(bee));
                if given.is_empty()
                    || !all_owned
                    || given.len() == self.size(*bee)
                    || !self.reserved.contains_key(new)
                {
                    return None;
                }
                self.reserved.remove(new);
                self.begin(new.0, app, colony);
                for cell in given {
                    self.cells.insert((app, cell), *new);
                }
            }
            Proposal::Release { bee } => {
                self.bees.get(bee)?;
                self.end(*bee)
            }
            Proposal::Relane { bee, number } => {
                let known = self.bees.get_mut(bee)?;
                self.reserved.remove(number)?;
                known.lanes.insert(number.0);
                known.current = number.0
            }
            Proposal::Retire { lane } => {
                let (app, number) = lane.bee()?;
                let is_of = |bee: &&mut Bee| bee.app == app && bee.lanes.contains(&number.0);
                let bee = self.bees.values_mut().find(is_of)?;
                if bee.current == number.0 {
                    return None;
                }
                bee.lanes.remove(&number.0);
                self.retired.push((number.0, app))
            }
            Proposal::Join { hive, after } => {
                if self.hives.get(hive).copied().unwrap_or_default() != *after {
                    return None;
                }
                let (incarnation, number) = (Incarnation(after.0 + 1), self.assign());
                self.hives.insert(*hive, incarnation);
                let was_declared_dead = false;
                self.hive_lanes.push(HiveLane { number, hive: *hive, incarnation, was_declared_dead });
                return Some(Decision::Joined { incarnation, lane: LaneId::passing(number), index });
            }
            Proposal::HiveDead { hive, incarnation } => {
                let is_it = |lane: &&mut HiveLane| lane.hive == *hive && lane.incarnation == *incarnation;
                let lane = self.hive_lanes.iter_mut().find(is_it)?;
                if self.hives[hive] != *incarnation || lane.was_declared_dead {
                    return None;
                }
                lane.was_declared_dead = true
            }
            Proposal::Found { after, members, is_replicated } => {
                let members: BTreeSet<HiveId> = members.iter().copied().collect();
                let newest = self.colonies.len() as u32;
                if *after != ColonyId(newest) || members.is_empty() || members.len() > COLONY_MEMBERS_MAX {
                    return None;
                }
                self.colonies.push(Colony {
                    members,
                    version: 0,
                    is_replicated: *is_replicated,
                    is_dead: false,
                    term: 0,
                    leader: None,
                    newest_reserved: BeeId(0),
                });
                return Some(Decision::Founded { colony: ColonyId(newest + 1), index });
            }
            Proposal::Members { colony, version, members, is_replicated } => {
                let members: BTreeSet<HiveId> = members.iter().copied().collect();
                let known = self.living(*colony)?;
                if *version != known.version + 1 || members.is_empty() || members.len() > COLONY_MEMBERS_MAX {
                    return None;
                }
                known.leader = known.leader.filter(|leader| members.contains(leader));
                (known.members, known.version, known.is_replicated) = (members, *version, *is_replicated)
            }
            Proposal::Leader { colony, term, hive } => {
                let known = self.living(*colony)?;
                if known.term >= *term || !known.members.contains(hive) {
                    return None;
                }
                (known.term, known.leader) = (*term, Some(*hive))
            }
            Proposal::ColonyDead { colony } => {
                let known = self.living(*colony)?;
                if known.is_replicated {
                    return None;
                }
                (known.is_dead, known.leader) = (true, None);
                let here = self.bees.iter().filter(|(_, bee)| bee.colony == *colony);
                let here: Vec<BeeId> = here.map(|(bee, _)| *bee).collect();
                here.into_iter().for_each(|bee| self.end(bee));
                for bee in self.bees.values_mut().filter(|bee| bee.aim == Some(Aim::Colony(*colony))) {
                    bee.aim = None
                }
                self.reserved.retain(|_, of| of != colony)
            }
            Proposal::App { app, version, replication, shapes } => {
                if self.apps.iter().any(|(other, known)| other != app && known.name == shapes.name) {
                    return None;
                }
                let known = self.apps.entry(*app).or_insert_with(|| App {
                    version: 0,
                    replication: 0,
                    name: shapes.name.clone(),
                    settings: 0,
                });
                let may = known.version + 1 == *version && known.name == shapes.name;
                if may {
                    (known.version, known.replication) = (*version, *replication)
                }
                self.apps.retain(|_, known| known.version > 0);
                may.then_some(())?
            }
            Proposal::Settings { app, settings } => {
                let known = self.apps.get_mut(app).filter(|known| known.settings + 1 == settings.version)?;
                known.settings = settings.version
            }
            other => panic!("{other:?} has no rule"),
        }
        Some(Decision::Done { index })
    }

    fn claim(&mut self, app: AppId, cells: &[CellId], colony: ColonyId) -> Option<Decision> {
        let mut owners: Vec<BeeId> = Vec::new();
        for cell in cells {
            if let Some(owner) = self.cells.get(&(app, *cell))
                && !owners.contains(owner)
            {
                owners.push(*owner)
            }
        }
        let roots: BTreeSet<BeeId> = owners.iter().map(|owner| self.root(*owner)).collect();

        // Ascending ids, so the first one of equally good ones wins.
        let mut winner: Option<BeeId> = None;
        for root in &roots {
            let is_replicated =
                |bee: BeeId| self.colonies[self.bees[&bee].colony.0 as usize - 1].is_replicated;
            let is_better = winner.is_none_or(|best| match (is_replicated(best), is_replicated(*root)) {
                (true, false) => false,
                (false, true) => true,
                _ => self.size(*root) > self.size(best),
            });
            if is_better {
                winner = Some(*root)
            }
        }

        let created = winner.is_none();
        let root = match winner {
            Some(root) => root,
            None => {
                self.living(colony)?;
                if cells.is_empty() {
                    return None;
                }
                let bee = self.assign();
                self.begin(bee, app, colony);
                BeeId(bee)
            }
        };
        for cell in cells {
            self.cells.entry((app, *cell)).or_insert(root);
        }
        for loser in roots.iter().filter(|bee| **bee != root) {
            self.bees.get_mut(loser).unwrap().aim = Some(Aim::Bee(root))
        }
        let Bee { colony, epoch, .. } = self.bees[&root];
        owners.retain(|owner| *owner != root);
        Some(Decision::Owner { root, colony, epoch, created, merging: owners, index: self.index })
    }

    fn fused(&mut self, from: BeeId, into: BeeId) -> Option<()> {
        let gone = self.bees.get(&from)?.clone();
        if from == into || self.bees.get(&into)?.app != gone.app {
            return None;
        }
        // If `into` had to merge into `from`, the united bee has to merge where `from` had to.
        let mut at = into;
        let mut led_to_from = false;
        while let Some(Aim::Bee(next)) = self.bees[&at].aim {
            led_to_from |= next == from;
            at = next
        }
        if led_to_from {
            self.bees.get_mut(&into)?.aim = gone.aim.filter(|aim| matches!(aim, Aim::Bee(_)))
        }

        self.bees.remove(&from);
        self.bees.get_mut(&into)?.lanes.extend(gone.lanes);
        self.cells.values_mut().filter(|owner| **owner == from).for_each(|owner| *owner = into);
        for bee in self.bees.values_mut().filter(|bee| bee.aim == Some(Aim::Bee(from))) {
            bee.aim = Some(Aim::Bee(into))
        }
        Some(())
    }

    /// Compares the registry with the model, and checks the invariants of the registry's part of the protocol.
    pub(crate) fn compare(&self, state: &RegistryState, cells: u64, apps: u16) {
        // I1: a cell has at most one owner, and this bee exists.
        for app in (0..apps).map(AppId) {
            for cell in (0..cells).map(CellId) {
                let owner = state.owner(app, cell);
                assert_eq!(owner, self.cells.get(&(app, cell)).copied(), "{app:?} {cell:?}");
                assert!(owner.is_none_or(|bee| self.bees.contains_key(&bee)), "{owner:?} is gone");
            }
        }
        assert_eq!((state.bees(), state.cells()), (self.bees.len(), self.cells.len()));

        for (bee, known) in &self.bees {
            let entry = state.bee(*bee).unwrap_or_else(|| panic!("{bee} does not exist"));
            assert_eq!(entry.cells, self.size(*bee), "{bee}");
            assert_eq!(
                (entry.app, entry.colony, entry.epoch),
                (known.app, known.colony, known.epoch),
                "{bee}"
            );
            // I7: a bee has at most one aim, and a bee in which others will end is not asked to move. That it has
            // none when it is asked to move, the model's rule says.
            assert_eq!(entry.aim, known.aim, "{bee}");
            let lane_of = |number| LaneId::of_bee(known.app, BeeId(number));
            assert_eq!(state.lane_of(*bee), Some(lane_of(known.current)), "{bee}");
            for number in &known.lanes {
                assert_eq!(state.bee_of_lane(lane_of(*number)), Some(*bee), "lane {number}");
                assert!(!state.is_retired(lane_of(*number)), "lane {number} belongs to {bee}");
            }
        }

        // I8: a lane that ended does not come back.
        for (number, app) in self.retired.iter().rev().take(8) {
            assert!(state.is_retired(LaneId::of_bee(*app, BeeId(*number))), "lane {number} is used again");
        }
        // I15: the lane of a hive ends only with its incarnation.
        for lane in self.hive_lanes.iter().rev().take(8) {
            let has_ended = self.hives[&lane.hive] > lane.incarnation || lane.was_declared_dead;
            assert_eq!(state.is_retired(LaneId::passing(lane.number)), has_ended, "{lane:?}");
        }
        for (hive, incarnation) in &self.hives {
            assert_eq!(state.hive(*hive).unwrap().incarnation, *incarnation);
        }
    }

    /// Compares what changes rarely.
    pub(crate) fn compare_members(&self, state: &RegistryState) {
        assert_eq!(state.colonies().count(), self.colonies.len());
        for ((colony, entry), known) in state.colonies().zip(&self.colonies) {
            assert!(entry.members.iter().eq(&known.members), "{colony}");
            assert_eq!(
                (entry.version, entry.is_replicated),
                (known.version, known.is_replicated),
                "{colony}"
            );
            assert_eq!((entry.term, entry.leader), (known.term, known.leader), "{colony}");
            assert_eq!(
                (entry.is_dead, entry.newest_reserved),
                (known.is_dead, known.newest_reserved),
                "{colony}"
            );
        }
        assert_eq!(state.apps().count(), self.apps.len());
        for ((app, entry), (same, known)) in state.apps().zip(&self.apps) {
            assert_eq!((app, &entry.shapes.name), (*same, &known.name));
            assert_eq!((entry.version, entry.replication), (known.version, known.replication));
            assert_eq!(entry.settings.version, known.settings);
        }
        for id in (1..=self.newest + 1).rev().take(500).map(BeeId) {
            assert_eq!(state.is_reserved(id), self.reserved.contains_key(&id), "{id}");
        }
    }
}
