//! Random proposals, most of which could be made in the state that the model has.

use crate::model::Model;
use beehive_protocol::{
    Aim, AppId, AppShapes, BeeId, CellId, ColonyId, Epoch, HiveId, Incarnation, LaneId, LoggedSettings,
    Proposal,
};

pub(crate) const APPS: u16 = 2;
pub(crate) const CELLS: u64 = 24;
const HIVES: u64 = 4;
const COLONIES: usize = 6;

/// A generator of random numbers that needs no crate: xorshift64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T>(&mut self, from: impl ExactSizeIterator<Item = T>) -> Option<T> {
        let mut from = from;
        let at = self.below(from.len() as u64) as usize;
        from.nth(at)
    }

    fn app(&mut self) -> AppId {
        AppId(self.below(u64::from(APPS)) as u16)
    }

    fn hive(&mut self) -> HiveId {
        HiveId(self.below(HIVES) as u32)
    }

    /// Returns a bee that exists, or any other number.
    fn bee(&mut self, model: &Model) -> BeeId {
        match self.one_in(8) {
            true => BeeId(self.below(model.newest + 3)),
            false => self.pick(model.bees.keys()).copied().unwrap_or(BeeId(1)),
        }
    }

    /// Returns a colony that is alive, or any other number.
    fn colony(&mut self, model: &Model) -> ColonyId {
        let count = model.colonies.len();
        let living = (1..).zip(&model.colonies).filter(|(_, colony)| !colony.is_dead);
        let living: Vec<u32> = living.map(|(id, _)| id).collect();
        match self.one_in(12) {
            true => ColonyId(self.below(count as u64 + 2) as u32),
            false => ColonyId(self.pick(living.into_iter()).unwrap_or(1)),
        }
    }

    fn epoch(&mut self, model: &Model, bee: BeeId) -> Epoch {
        let epoch = model.bees.get(&bee).map_or(0, |bee| bee.epoch.0);
        match self.below(8) {
            0 => Epoch(epoch + 1),
            1 => Epoch(epoch.saturating_sub(1)),
            _ => Epoch(epoch),
        }
    }

    fn reserved(&mut self, model: &Model) -> BeeId {
        match self.one_in(8) {
            true => BeeId(self.below(model.newest + 3)),
            false => self.pick(model.reserved.keys()).copied().unwrap_or(BeeId(1)),
        }
    }

    fn members(&mut self) -> Vec<HiveId> {
        let count = self.below(4);
        (0..count).map(|_| self.hive()).collect()
    }

    /// Returns a number that is mostly the next one.
    fn next(&mut self, known: u32) -> u32 {
        if self.one_in(4) { self.below(u64::from(known) + 3) as u32 } else { known + 1 }
    }

    pub(crate) fn proposal(&mut self, model: &Model) -> Proposal {
        match self.below(1_000) {
            0..380 => {
                let count = 1 + if self.one_in(3) { self.below(4) } else { 0 };
                let app = self.app();
                let cells = (0..count).map(|_| CellId(self.below(CELLS))).collect();
                Proposal::Claim { app, cells, colony: self.colony(model) }
            }
            380..460 => {
                let bee = self.bee(model);
                Proposal::Aim { bee, epoch: self.epoch(model, bee), colony: self.colony(model) }
            }
            460..560 => {
                let bee = self.bee(model);
                let to = match model.bees.get(&bee).and_then(|bee| bee.aim) {
                    Some(Aim::Colony(colony)) if !self.one_in(4) => colony,
                    Some(Aim::Bee(target)) if !self.one_in(4) => model.bees[&model.root(target)].colony,
                    _ => self.colony(model),
                };
                Proposal::Commit { bee, epoch: self.epoch(model, bee), to }
            }
            560..660 => {
                let aimed = model.bees.iter().filter_map(|(bee, known)| match known.aim? {
                    Aim::Bee(into) => Some((*bee, into)),
                    Aim::Colony(_) => None,
                });
                let aimed: Vec<(BeeId, BeeId)> = aimed.collect();
                match self.pick(aimed.into_iter()).filter(|_| !self.one_in(4)) {
                    Some((from, into)) => Proposal::Fused { from, into },
                    // The two bees are arbitrary: the registry need not have decided to merge them.
                    None => Proposal::Fused { from: self.bee(model), into: self.bee(model) },
                }
            }
            660..690 => {
                let colony = self.colony(model);
                let known = model.colonies.get((colony.0 as usize).wrapping_sub(1));
                let after = known.map_or(BeeId(0), |known| known.newest_reserved);
                let after = if self.one_in(6) { self.bee(model) } else { after };
                let count = if self.one_in(40) { 4_090 } else { self.below(5) as u32 };
                Proposal::Reserve { colony, after, count }
            }
            690..750 => {
                let bee = self.bee(model);
                let owned = model.cells.iter().filter(|(_, owner)| **owner == bee);
                let owned: Vec<CellId> = owned.map(|((_, cell), _)| *cell).collect();
                let count = self.below(owned.len() as u64 + 1);
                let cells = (0..count).filter_map(|_| self.pick(owned.iter()).copied());
                let mut cells: Vec<CellId> = cells.collect();
                if self.one_in(10) {
                    cells.push(CellId(self.below(CELLS)))
                }
                Proposal::Split { bee, cells, new: self.reserved(model) }
            }
            750..800 => Proposal::Release { bee: self.bee(model) },
            800..830 => Proposal::Relane { bee: self.bee(model), number: self.reserved(model) },
            830..890 => {
                let bee = self.bee(model);
                let lane = model.bees.get(&bee).and_then(|known| self.pick(known.lanes.iter()));
                let app = model.bees.get(&bee).map_or(AppId(0), |known| known.app);
                let lane = LaneId::of_bee(app, BeeId(lane.copied().unwrap_or(bee.0)));
                match self.one_in(10) {
                    true => Proposal::Retire { lane: LaneId(self.below(model.newest << 18)) },
                    false => Proposal::Retire { lane },
                }
            }
            890..910 => {
                let hive = self.hive();
                let known = model.hives.get(&hive).map_or(0, |incarnation| incarnation.0);
                let after = if self.one_in(4) { self.below(u64::from(known) + 2) as u32 } else { known };
                Proposal::Join { hive, after: Incarnation(after) }
            }
            910..925 => {
                let hive = self.hive();
                let known = model.hives.get(&hive).map_or(0, |incarnation| incarnation.0);
                let incarnation =
                    if self.one_in(4) { self.below(u64::from(known) + 2) as u32 } else { known };
                Proposal::HiveDead { hive, incarnation: Incarnation(incarnation) }
            }
            925..940 => {
                let newest = model.colonies.len() as u32;
                let living = model.colonies.iter().filter(|colony| !colony.is_dead).count();
                let after = if living < COLONIES { newest } else { newest.wrapping_sub(1) };
                Proposal::Found {
                    after: ColonyId(after),
                    members: self.members(),
                    is_replicated: self.one_in(2),
                }
            }
            940..955 => {
                let colony = self.colony(model);
                let known = model.colonies.get((colony.0 as usize).wrapping_sub(1));
                let version = self.next(known.map_or(0, |known| known.version));
                Proposal::Members { colony, version, members: self.members(), is_replicated: self.one_in(2) }
            }
            955..970 => {
                let colony = self.colony(model);
                let known = model.colonies.get((colony.0 as usize).wrapping_sub(1));
                let term = known.map_or(0, |known| known.term) + self.below(3);
                Proposal::Leader { colony, term, hive: self.hive() }
            }
            970..972 => Proposal::ColonyDead { colony: self.colony(model) },
            972..986 => {
                let app = self.app();
                let version = self.next(model.apps.get(&app).map_or(0, |known| known.version));
                let name = if self.one_in(4) { self.app() } else { app };
                let shapes = AppShapes { name: format!("app {}", name.0), dictionaries: Vec::new() };
                Proposal::App { app, version, replication: self.below(5) as u8, shapes }
            }
            _ => {
                let app = self.app();
                let version = self.next(model.apps.get(&app).map_or(0, |known| known.settings));
                Proposal::Settings { app, settings: LoggedSettings { version, table: String::new() } }
            }
        }
    }
}
