//! A cluster without hives: its registry, the logs of its colonies, and all steps that their leaders may take, in any order.
//!
//! Each leader has a replica of the registry, which may be behind. See `beehive_protocol::steps` for the real steps.

use super::super::change::Change;
use super::{dict, put};
use crate::state::image::EncodedCells;
use beehive_protocol::{BeeId, Epoch};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const COLONIES: usize = 3;

/// A cell of a dictionary without views.
pub(super) const UNSHOWN: u8 = 9;

const CELLS: [u8; 3] = [0, 1, UNSHOWN];

#[derive(Clone, Copy, PartialEq)]
enum Aim {
    Colony(usize),
    Bee(u64),
}

/// The registry's entry for a bee.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) at: usize,
    pub(super) epoch: u32,
    aim: Option<Aim>,
}

#[derive(Clone, Default)]
pub(super) struct Registry {
    pub(super) index: u64,
    owners: BTreeMap<u8, u64>,
    pub(super) bees: BTreeMap<u64, Entry>,
}

/// A bee in the state of a log.
#[derive(Clone, Default)]
pub(super) struct Bee {
    pub(super) epoch: u32,
    pub(super) leaves_for: Option<usize>,
    cells: BTreeSet<u8>,
    pub(super) rows: EncodedCells,
}

type Bees = BTreeMap<u64, Bee>;

#[derive(Clone, Copy, PartialEq)]
enum Untold {
    Fused(u64, u64),
    Released(u64),
}

impl Untold {
    fn ended(self) -> u64 {
        match self {
            Untold::Fused(bee, _) | Untold::Released(bee) => bee,
        }
    }
}

/// An entry of a log: what it tells the views, and the state after it.
pub(super) struct Told {
    pub(super) change: Option<Change>,
    pub(super) bees: Bees,
    pub(super) staged: Bees,
    pub(super) known: u64,
}

/// The log of a colony.
#[derive(Default)]
pub(super) struct Log {
    pub(super) told: Vec<Told>,
    bees: Bees,
    staged: Bees,
    known: u64,
    untold: Vec<Untold>,
    ended: BTreeSet<u64>,
}

impl Log {
    fn append(&mut self, change: Option<Change>, view: u64) {
        self.known = self.known.max(view);
        let (bees, staged) = (self.bees.clone(), self.staged.clone());
        self.told.push(Told { change, bees, staged, known: self.known })
    }

    fn is_busy(&self, bee: u64) -> bool {
        let is_about = |untold: &Untold| match *untold {
            Untold::Fused(from, into) => from == bee || into == bee,
            Untold::Released(of) => of == bee,
        };
        self.untold.iter().any(is_about)
    }

    fn is_new(&self, bee: u64) -> bool {
        !self.bees.contains_key(&bee) && !self.staged.contains_key(&bee) && !self.ended.contains(&bee)
    }
}

/// A step of a leader.
#[derive(Clone, Copy)]
enum Step {
    Freeze { at: usize, bee: u64, to: usize },
    Stage { at: usize, bee: u64, to: usize },
    Commit { bee: u64, epoch: u32, to: usize },
    Adopt { at: usize, bee: u64, epoch: u32 },
    Unstage { at: usize, bee: u64 },
    Drop { at: usize, bee: u64 },
    Thaw { at: usize, bee: u64, epoch: u32 },
    Fuse { at: usize, bee: u64, into: u64 },
    Release { at: usize, bee: u64 },
    Tell(Untold),
    Told { at: usize, what: Untold },
    Create { at: usize, bee: u64 },
}

#[derive(Default)]
pub(super) struct World {
    pub(super) registry: Registry,
    /// The registry at each index.
    pub(super) past: Vec<Registry>,
    pub(super) logs: [Log; COLONIES],
    /// The indices of the leaders' replicas.
    replicas: [usize; COLONIES],
    /// The values that each cell has had.
    pub(super) history: BTreeMap<u8, Vec<Option<u32>>>,
    values: u32,
    newest: u64,
}

/// A random decision: its kind, and three numbers that say more.
pub(super) type Choice = (u8, u8, u8, u8);

fn pick<T: Copy>(all: &[T], choice: u8) -> Option<T> {
    (!all.is_empty()).then(|| all[usize::from(choice) % all.len()])
}

impl Registry {
    /// Returns the last bee in the chain of merges.
    fn root(&self, mut bee: u64) -> u64 {
        for _ in 0..20 {
            match self.bees.get(&bee).and_then(|entry| entry.aim) {
                Some(Aim::Bee(into)) => bee = into,
                _ => return bee,
            }
        }
        bee
    }

    fn is_aimed_at(&self, bee: u64) -> bool {
        self.bees.values().any(|entry| entry.aim == Some(Aim::Bee(bee)))
    }

    fn fused(&mut self, from: u64, into: u64) {
        self.owners.values_mut().filter(|owner| **owner == from).for_each(|owner| *owner = into);
        if self.root(into) == from || self.bees[&into].aim == Some(Aim::Bee(from)) {
            let on = self.bees[&from].aim.filter(|aim| matches!(aim, Aim::Bee(_)));
            self.bees.get_mut(&into).unwrap().aim = on
        }
        self.bees.remove(&from);
        for (bee, entry) in &mut self.bees {
            if entry.aim == Some(Aim::Bee(from)) {
                entry.aim = (*bee != into).then_some(Aim::Bee(into))
            }
        }
    }

    fn released(&mut self, bee: u64) {
        self.owners.retain(|_, owner| *owner != bee);
        self.bees.remove(&bee);
        for entry in self.bees.values_mut().filter(|entry| entry.aim == Some(Aim::Bee(bee))) {
            entry.aim = None
        }
    }
}

impl World {
    /// Builds a world by random decisions, and finishes all moves.
    pub(super) fn new(choices: &[Choice]) -> World {
        let mut world = World { past: vec![Registry::default()], ..World::default() };
        choices.iter().for_each(|choice| world.choose(*choice));
        for number in 0..300 {
            world.replicas = [world.past.len() - 1; COLONIES];
            let is_needed = |step: &Step| match *step {
                Step::Release { .. } | Step::Create { .. } | Step::Told { .. } => false,
                Step::Commit { bee, to, .. } if !world.logs[to].staged.contains_key(&bee) => false,
                _ => world.is_useful(step),
            };
            let steps: Vec<Step> = world.steps().into_iter().filter(is_needed).collect();
            let Some(step) = pick(&steps, (number * 37 % 256) as u8) else { break };
            world.take(step)
        }
        world
    }

    fn choose(&mut self, (kind, one, two, three): Choice) {
        match kind {
            0..=4 => {
                if let Some((at, bee, cell)) = pick(&self.works(), one) {
                    self.write((at, bee), cell, two % 3 == 0)
                }
            }
            5 | 6 => {
                let other = (two % 3 == 0).then_some(usize::from(one) / CELLS.len() % CELLS.len());
                let cells = [usize::from(one) % CELLS.len()].into_iter().chain(other).map(|at| CELLS[at]);
                self.claim(&cells.collect(), usize::from(three) % COLONIES)
            }
            7 => {
                let bees: Vec<u64> = self.registry.bees.keys().copied().collect();
                if let Some(bee) = pick(&bees, one) {
                    self.aim(bee, usize::from(three) % COLONIES)
                }
            }
            8..=18 => {
                let is_likely = |step: &Step| match *step {
                    Step::Commit { bee, to, .. } => self.logs[to].staged.contains_key(&bee) || two % 10 == 0,
                    Step::Release { .. } => two % 3 == 0,
                    Step::Create { .. } => two % 5 == 0,
                    // a leader that is slow, so that a bee may end before its old copy is dropped
                    Step::Drop { .. } => three % 25 == 0,
                    _ => true,
                };
                let steps = self.steps().into_iter();
                let steps: Vec<Step> = steps.filter(|step| is_likely(step) && self.is_useful(step)).collect();
                if let Some(step) = pick(&steps, one) {
                    self.take(step)
                }
            }
            _ => {
                let replica = &mut self.replicas[usize::from(one) % COLONIES];
                let newest = self.past.len() - 1;
                *replica = if two % 4 == 0 { newest.min(*replica + 1 + usize::from(two % 8)) } else { newest }
            }
        }
    }

    /// Checks that a step is not one that was taken before.
    fn is_useful(&self, step: &Step) -> bool {
        match *step {
            Step::Tell(what) => self.registry.bees.contains_key(&what.ended()),
            Step::Commit { bee, epoch, .. } => {
                self.registry.bees.get(&bee).is_some_and(|entry| entry.epoch == epoch)
            }
            Step::Stage { bee, to, .. } => !self.logs[to].staged.contains_key(&bee),
            _ => true,
        }
    }

    fn decided(&mut self) {
        self.registry.index += 1;
        self.past.push(self.registry.clone())
    }

    /// A hive asks for the owner of cells. If there are several, they have to merge.
    ///
    /// The real registry also gives cells without an owner to the owner of the others. This model does not: see the known limit in
    /// `claims/mod.rs`.
    fn claim(&mut self, cells: &BTreeSet<u8>, colony: usize) {
        let owners: BTreeSet<u64> =
            cells.iter().filter_map(|cell| self.registry.owners.get(cell).copied()).collect();
        let roots: BTreeSet<u64> = owners.iter().map(|owner| self.registry.root(*owner)).collect();
        if roots.is_empty() {
            self.newest += 1;
            let bee = self.newest;
            self.registry.bees.insert(bee, Entry { at: colony, epoch: 0, aim: None });
            self.registry.owners.extend(cells.iter().map(|cell| (*cell, bee)))
        } else if roots.len() > 1 {
            let count = |bee: &u64| self.registry.owners.values().filter(|owner| *owner == bee).count();
            let into = roots.iter().copied().max_by_key(|bee| (count(bee), std::cmp::Reverse(*bee))).unwrap();
            for bee in roots.iter().filter(|bee| **bee != into) {
                self.registry.bees.get_mut(bee).unwrap().aim = Some(Aim::Bee(into))
            }
        } else {
            return;
        }
        self.decided()
    }

    fn aim(&mut self, bee: u64, colony: usize) {
        let entry = &self.registry.bees[&bee];
        if entry.aim.is_some() || entry.at == colony || self.registry.is_aimed_at(bee) {
            return;
        }
        self.registry.bees.get_mut(&bee).unwrap().aim = Some(Aim::Colony(colony));
        self.decided()
    }

    fn commit(&mut self, bee: u64, epoch: u32, to: usize) {
        let Some(entry) = self.registry.bees.get_mut(&bee).filter(|entry| entry.epoch == epoch) else {
            return;
        };
        (entry.at, entry.epoch) = (to, epoch + 1);
        if matches!(entry.aim, Some(Aim::Colony(_))) {
            entry.aim = None
        }
        self.decided()
    }

    fn tell(&mut self, what: Untold) {
        if !self.registry.bees.contains_key(&what.ended()) {
            return;
        }
        match what {
            Untold::Fused(_, into) if !self.registry.bees.contains_key(&into) => return,
            Untold::Fused(from, into) => self.registry.fused(from, into),
            Untold::Released(bee) => self.registry.released(bee),
        }
        self.decided()
    }

    fn view(&self, colony: usize) -> Option<&Registry> {
        let replica = self.replicas[colony];
        (replica as u64 >= self.logs[colony].known).then(|| &self.past[replica])
    }

    /// Returns the writes that are possible: colony, bee and cell.
    fn works(&self) -> Vec<(usize, u64, u8)> {
        let mut works = Vec::new();
        for (at, log) in self.logs.iter().enumerate() {
            let Some(view) = self.view(at) else { continue };
            for (bee, copy) in log.bees.iter().filter(|(_, copy)| copy.leaves_for.is_none()) {
                let is_there =
                    view.bees.get(bee).is_some_and(|entry| (entry.at, entry.epoch) == (at, copy.epoch));
                let may_begin = |cell: u8| {
                    let is_held = log.bees.values().any(|other| other.cells.contains(&cell));
                    is_there && !is_held && view.owners.get(&cell) == Some(bee)
                };
                let cells = CELLS.into_iter().filter(|cell| copy.cells.contains(cell) || may_begin(*cell));
                works.extend(cells.map(|cell| (at, *bee, cell)))
            }
            for (cell, bee) in &view.owners {
                let is_there = view.bees.get(bee).is_some_and(|entry| (entry.at, entry.epoch) == (at, 0));
                if is_there && log.is_new(*bee) {
                    works.push((at, *bee, *cell))
                }
            }
        }
        works
    }

    fn write(&mut self, (at, bee): (usize, u64), cell: u8, removes: bool) {
        let log = &mut self.logs[at];
        let copy = log.bees.entry(bee).or_default();
        copy.cells.insert(cell);
        let is_there = copy.rows.rows_of(dict(cell), &[cell]).next().is_some();
        self.values += 1;
        let value = (!removes || !is_there).then_some(self.values);
        let redo = put(&mut copy.rows, cell, value);
        let known = log.known;
        if cell == UNSHOWN {
            return log.append(None, 0);
        }
        self.history.entry(cell).or_insert_with(|| vec![None]).push(value);
        log.append(Some(Change::Rows { bee: BeeId(bee), known, redo }), 0)
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, log) in self.logs.iter().enumerate() {
            let Some(view) = self.view(at) else { continue };
            for (bee, copy) in &log.bees {
                match copy.leaves_for {
                    None => self.of_active((at, *bee), copy, view, &mut steps),
                    Some(to) => self.of_frozen((at, *bee), (copy, to), view, &mut steps),
                }
            }
            for (bee, copy) in &log.staged {
                let (bee, epoch) = (*bee, copy.epoch);
                match view.bees.get(&bee) {
                    Some(entry) if (entry.at, entry.epoch) == (at, epoch) => {
                        if !log.bees.contains_key(&bee) {
                            steps.push(Step::Adopt { at, bee, epoch })
                        }
                    }
                    Some(entry) if entry.epoch + 1 == epoch => {
                        steps.push(Step::Commit { bee, epoch: entry.epoch, to: at })
                    }
                    Some(entry) if entry.epoch < epoch => {}
                    _ => steps.push(Step::Unstage { at, bee }),
                }
            }
            for what in &log.untold {
                steps.push(match view.bees.contains_key(&what.ended()) {
                    true => Step::Tell(*what),
                    false => Step::Told { at, what: *what },
                })
            }
            let missing = view
                .bees
                .iter()
                .filter(|(bee, entry)| (entry.at, entry.epoch) == (at, 0) && log.is_new(**bee));
            steps.extend(missing.map(|(bee, _)| Step::Create { at, bee: *bee }))
        }
        steps
    }

    fn of_active(&self, (at, bee): (usize, u64), copy: &Bee, view: &Registry, steps: &mut Vec<Step>) {
        let (log, Some(entry)) = (&self.logs[at], view.bees.get(&bee)) else { return };
        if log.is_busy(bee) {
            return;
        }
        if (entry.at, entry.epoch) == (at, copy.epoch) {
            match entry.aim {
                Some(Aim::Colony(to)) if to != at => steps.push(Step::Freeze { at, bee, to }),
                Some(Aim::Bee(into)) => {
                    let Some(root) = view.bees.get(&view.root(into)) else { return };
                    let is_here = log.bees.get(&into).is_some_and(|into| into.leaves_for.is_none());
                    if root.at != at {
                        steps.push(Step::Freeze { at, bee, to: root.at })
                    } else if is_here && !log.is_busy(into) {
                        steps.push(Step::Fuse { at, bee, into })
                    }
                }
                _ => {}
            }
        }
        if copy.rows.row_count() == 0 && !matches!(entry.aim, Some(Aim::Bee(_))) {
            steps.push(Step::Release { at, bee })
        }
    }

    fn of_frozen(
        &self,
        (at, bee): (usize, u64),
        (copy, to): (&Bee, usize),
        view: &Registry,
        steps: &mut Vec<Step>,
    ) {
        match view.bees.get(&bee) {
            Some(entry) if entry.epoch == copy.epoch => {
                steps.push(Step::Stage { at, bee, to });
                steps.push(Step::Commit { bee, epoch: copy.epoch, to: at })
            }
            Some(entry) if entry.epoch > copy.epoch && entry.at == at => {
                steps.push(match self.logs[at].staged.contains_key(&bee) {
                    true => Step::Drop { at, bee },
                    false => Step::Thaw { at, bee, epoch: entry.epoch },
                })
            }
            Some(entry) if entry.epoch < copy.epoch => {}
            _ => steps.push(Step::Drop { at, bee }),
        }
    }

    fn take(&mut self, step: Step) {
        let view = |world: &World, at: usize| world.replicas[at] as u64;
        match step {
            Step::Commit { bee, epoch, to } => self.commit(bee, epoch, to),
            Step::Tell(what) => self.tell(what),
            Step::Stage { at, bee, to } => self.stage(at, bee, to),
            Step::Freeze { at, bee, to } => {
                let view = view(self, at);
                self.logs[at].bees.get_mut(&bee).unwrap().leaves_for = Some(to);
                self.logs[at].append(Some(Change::Freeze { bee: BeeId(bee), view }), view)
            }
            Step::Adopt { at, bee, epoch } => {
                let (view, log) = (view(self, at), &mut self.logs[at]);
                let copy = log.staged.remove(&bee).unwrap();
                let rows = copy.rows.of_dictionaries(1);
                log.bees.insert(bee, copy);
                log.append(Some(Change::Begin { bee: BeeId(bee), epoch: Epoch(epoch), view, rows }), view)
            }
            Step::Unstage { at, bee } => {
                let (view, log) = (view(self, at), &mut self.logs[at]);
                log.staged.remove(&bee);
                log.append(None, view)
            }
            Step::Drop { at, bee } => {
                let (view, log) = (view(self, at), &mut self.logs[at]);
                log.bees.remove(&bee);
                log.append(Some(Change::Drop { bee: BeeId(bee) }), view)
            }
            Step::Thaw { at, bee, epoch } => {
                let (view, log) = (view(self, at), &mut self.logs[at]);
                let copy = log.bees.get_mut(&bee).unwrap();
                (copy.leaves_for, copy.epoch) = (None, epoch);
                log.append(Some(Change::Thaw { bee: BeeId(bee), epoch: Epoch(epoch), view }), view)
            }
            Step::Fuse { at, bee, into } => {
                let (view, log) = (view(self, at), &mut self.logs[at]);
                let gone = log.bees.remove(&bee).unwrap();
                let target = log.bees.get_mut(&into).unwrap();
                target.cells.extend(gone.cells);
                target.rows.absorb(gone.rows);
                log.untold.push(Untold::Fused(bee, into));
                log.ended.insert(bee);
                log.append(Some(Change::Fuse { from: BeeId(bee), into: BeeId(into), view }), view)
            }
            Step::Release { at, bee } => {
                let (view, log) = (view(self, at), &mut self.logs[at]);
                log.bees.remove(&bee);
                log.untold.push(Untold::Released(bee));
                log.ended.insert(bee);
                log.append(Some(Change::Release { bee: BeeId(bee), view }), view)
            }
            Step::Told { at, what } => {
                let (view, log) = (view(self, at), &mut self.logs[at]);
                log.untold.retain(|untold| *untold != what);
                log.append(None, view)
            }
            Step::Create { at, bee } => {
                let (view, log) = (view(self, at), &mut self.logs[at]);
                log.bees.insert(bee, Bee::default());
                let rows = EncodedCells::default();
                log.append(Some(Change::Begin { bee: BeeId(bee), epoch: Epoch(0), view, rows }), view)
            }
        }
    }

    /// The target of a move takes the copy of a frozen bee, if its replica of the registry is not behind.
    fn stage(&mut self, at: usize, bee: u64, to: usize) {
        let copy = self.logs[at].bees[&bee].clone();
        let (epoch, known) = (copy.epoch + 1, self.logs[at].known);
        let view = self.view(to).filter(|view| view.index >= known);
        let entry = view.and_then(|view| view.bees.get(&bee));
        let is_wanted =
            entry.is_some_and(|entry| entry.epoch + 1 == epoch || (entry.epoch == epoch && entry.at == to));
        let log = &mut self.logs[to];
        let has_newer = |bees: &Bees| bees.get(&bee).is_some_and(|other| other.epoch >= epoch);
        if is_wanted && !has_newer(&log.bees) && !has_newer(&log.staged) && !log.ended.contains(&bee) {
            log.staged.insert(bee, Bee { epoch, leaves_for: None, ..copy });
            log.append(None, known)
        }
    }
}
