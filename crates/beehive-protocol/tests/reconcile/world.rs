//! Several colonies and one registry. Proposals and copies of bees are lost, doubled and reordered, and leaders change to
//! replicas of the registry that are older.

use beehive_protocol::{
    Aim, AppId, BeeId, CellId, ColonyId, Decision, Epoch, HiveId, Hosting, HostingRecord, Proposal,
    RegistryState, StageFrame, Step, Untold, stage, steps,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const APP: AppId = AppId(0);
const CELLS: u64 = 5;

/// A rule that a walk breaks, to see that the checks notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    /// The records of this kind do not raise the fence.
    Unfenced(Kind),
    /// A copy is active as soon as it is staged.
    ActiveWhenStaged,
    /// The target tells the registry that it has the bee before it has staged the copy.
    CommitBeforeStage,
    /// A leader works although its replica is older than what its log is based on.
    NoFence,
    /// A frozen bee is dropped when its copy was sent.
    DropWhenSent,
    /// A bee that is named in an untold change takes part in another one.
    BusyChanges,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Create,
    Freeze,
    Stage,
    Unstage,
    Adopt,
    Drop,
    Thaw,
    Fuse,
    Split,
    Release,
    Told,
}

pub(crate) fn kind(record: &HostingRecord) -> Kind {
    match record {
        HostingRecord::Create { .. } => Kind::Create,
        HostingRecord::Freeze { .. } => Kind::Freeze,
        HostingRecord::Stage { .. } => Kind::Stage,
        HostingRecord::Unstage { .. } => Kind::Unstage,
        HostingRecord::Adopt { .. } => Kind::Adopt,
        HostingRecord::Drop { .. } => Kind::Drop,
        HostingRecord::Thaw { .. } => Kind::Thaw,
        HostingRecord::Fuse { .. } => Kind::Fuse,
        HostingRecord::Split { .. } => Kind::Split,
        HostingRecord::Release { .. } => Kind::Release,
        HostingRecord::Told { .. } => Kind::Told,
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).cloned()
    }
}

/// The cells of a bee, each with the number of messages that it has handled.
type Cells = BTreeMap<CellId, u64>;

/// A colony's log, which commits at once, and its leader's replica of the registry.
#[derive(Clone, Default)]
struct Colony {
    hosting: Hosting,
    cells: BTreeMap<BeeId, Cells>,
    staged: BTreeMap<BeeId, Cells>,
    view: usize,
}

#[derive(Clone)]
enum Packet {
    Propose(Proposal),
    Copy(StageFrame, Cells),
}

pub(crate) struct World {
    broken: Broken,
    random: Random,
    /// The registry after each proposal.
    registry: Vec<RegistryState>,
    colonies: Vec<Colony>,
    net: Vec<Packet>,
    /// The number of messages that each cell has handled, on all colonies together.
    handled: BTreeMap<CellId, u64>,
    /// I8: a bee becomes active once in each epoch.
    activated: BTreeSet<(BeeId, Epoch)>,
    pub(crate) kinds: BTreeMap<Kind, u64>,
}

fn id(colony: usize) -> ColonyId {
    ColonyId(colony as u32 + 1)
}

impl World {
    pub(crate) fn new(seed: u64, colonies: usize, broken: Broken) -> World {
        let mut registry = RegistryState::default();
        for after in 0..colonies as u32 {
            let (after, members) = (ColonyId(after), vec![HiveId(after)]);
            registry.apply(&Proposal::Found { after, members, is_replicated: true });
            let colony = ColonyId(after.0 + 1);
            registry.apply(&Proposal::Reserve { colony, after: BeeId(0), count: 4 });
        }
        let view = 0;
        World {
            broken,
            random: Random(seed),
            registry: vec![registry],
            colonies: vec![Colony { view, ..Colony::default() }; colonies],
            net: Vec::new(),
            handled: BTreeMap::new(),
            activated: BTreeSet::new(),
            kinds: BTreeMap::new(),
        }
    }

    fn newest(&self) -> &RegistryState {
        self.registry.last().unwrap()
    }

    fn view(&self, colony: usize) -> &RegistryState {
        &self.registry[self.colonies[colony].view]
    }

    fn propose(&mut self, proposal: &Proposal) {
        let mut next = self.newest().clone();
        if !matches!(next.apply(proposal), Decision::Void { .. }) {
            assert_eq!(next.check(), Ok(()));
            self.registry.push(next)
        }
    }

    fn activate(&mut self, bee: BeeId, epoch: Epoch) {
        assert!(self.activated.insert((bee, epoch)), "I8: {bee} becomes active twice in {epoch:?}");
    }

    /// Appends a record, which is committed at once.
    fn append(&mut self, colony: usize, mut record: HostingRecord, copy: Option<Cells>) {
        *self.kinds.entry(kind(&record)).or_default() += 1;
        if self.broken == Broken::Unfenced(kind(&record)) {
            match &mut record {
                HostingRecord::Create { view, .. }
                | HostingRecord::Freeze { view, .. }
                | HostingRecord::Stage { view, .. }
                | HostingRecord::Unstage { view, .. }
                | HostingRecord::Adopt { view, .. }
                | HostingRecord::Drop { view, .. }
                | HostingRecord::Thaw { view, .. }
                | HostingRecord::Fuse { view, .. }
                | HostingRecord::Told { view, .. } => *view = 0,
                HostingRecord::Split { .. } | HostingRecord::Release { .. } => {}
            }
        }
        // I7: a bee takes part in one change at a time
        let log = &self.colonies[colony].hosting;
        let is_free = |bee: &BeeId| self.broken == Broken::BusyChanges || log.is_free(*bee);
        match &record {
            HostingRecord::Freeze { bee, .. } => assert!(is_free(bee), "I7: {record:?}"),
            HostingRecord::Fuse { from, into, .. } => {
                assert!(is_free(from) && is_free(into), "I7: {record:?}")
            }
            _ => {}
        }

        let log = &mut self.colonies[colony];
        log.hosting.apply(&record);
        match record {
            HostingRecord::Create { bee, .. } => {
                log.cells.insert(bee, Cells::new());
                self.activate(bee, Epoch(0))
            }
            HostingRecord::Stage { bee, .. } => {
                log.staged.insert(bee, copy.unwrap());
                if self.broken == Broken::ActiveWhenStaged {
                    self.append(colony, HostingRecord::Adopt { bee, view: 0 }, None)
                }
            }
            HostingRecord::Unstage { bee, .. } => drop(log.staged.remove(&bee)),
            HostingRecord::Adopt { bee, .. } => {
                let cells = log.staged.remove(&bee).expect("a staged copy");
                log.cells.insert(bee, cells);
                let epoch = log.hosting.bee(bee).unwrap().epoch;
                self.activate(bee, epoch)
            }
            HostingRecord::Drop { bee, .. } => drop(log.cells.remove(&bee)),
            HostingRecord::Thaw { bee, epoch, .. } => self.activate(bee, epoch),
            HostingRecord::Fuse { from, into, .. } => {
                let gone = log.cells.remove(&from).expect("a bee that merges");
                log.cells.get_mut(&into).expect("a bee into which it merges").extend(gone)
            }
            HostingRecord::Split { bee, cells, new } => {
                let from = log.cells.get_mut(&bee).unwrap();
                let given: Cells =
                    cells.iter().filter_map(|cell| Some((*cell, from.remove(cell)?))).collect();
                log.cells.insert(new, given);
                self.activate(new, Epoch(0))
            }
            HostingRecord::Release { bee } => drop(log.cells.remove(&bee)),
            HostingRecord::Freeze { .. } | HostingRecord::Told { .. } => {}
        }
        self.check()
    }

    /// I1: a cell is in at most one active bee of all logs.
    fn check(&self) {
        let mut owned = BTreeSet::new();
        for (at, colony) in self.colonies.iter().enumerate() {
            assert!(colony.cells.keys().copied().eq(colony.hosting.bees().map(|(bee, _)| bee)));
            for (bee, cells) in colony.cells.iter().filter(|(bee, _)| colony.hosting.is_active(**bee)) {
                for cell in cells.keys() {
                    assert!(owned.insert(*cell), "I1: {cell:?} has two owners, one is {bee} of {:?}", id(at))
                }
            }
        }
    }

    /// A bee handles a message to a cell: the cell must have what all earlier messages left.
    fn work(&mut self, colony: usize) {
        let log = &self.colonies[colony];
        let view = self.view(colony);
        if view.index() < log.hosting.known() && self.broken != Broken::NoFence {
            return;
        }
        let active: Vec<BeeId> =
            log.cells.keys().copied().filter(|bee| log.hosting.is_active(*bee)).collect();
        let cell = CellId(self.random.below(CELLS as usize) as u64);
        let Some(bee) = self.random.pick(&active) else { return };
        let log = &self.colonies[colony];
        let view = self.view(colony);
        let held = log.cells.values().chain(log.staged.values()).any(|cells| cells.contains_key(&cell));
        // a cell that no bee of this log has, and that the registry has given to this bee
        let is_given = !held && view.owner(APP, cell) == Some(bee);
        if !log.cells[&bee].contains_key(&cell) && !is_given {
            return;
        }
        let empties = self.random.one_in(3);
        let known = self.handled.entry(cell).or_default();
        let value = self.colonies[colony].cells.get_mut(&bee).unwrap().entry(cell).or_default();
        assert_eq!(value, known, "{bee} of {:?} has not what {cell:?} handled before", id(colony));
        *value = if empties { 0 } else { *value + 1 };
        *known = *value;
        self.check()
    }

    /// Lets a bee split or release cells, if it may.
    fn change(&mut self, colony: usize) {
        let log = &self.colonies[colony];
        let view = self.view(colony);
        if view.index() < log.hosting.known() {
            return;
        }
        let free: Vec<BeeId> = log.cells.keys().copied().filter(|bee| log.hosting.is_free(*bee)).collect();
        let Some(bee) = self.random.pick(&free) else { return };
        let cells = &self.colonies[colony].cells[&bee];
        let is_empty = cells.values().all(|value| *value == 0);
        let some: Vec<CellId> = cells.keys().copied().collect();
        if is_empty && self.random.one_in(2) {
            return self.append(colony, HostingRecord::Release { bee }, None);
        }
        let first = colony as u64 * 4 + 1;
        let unused = (first..first + 4).map(BeeId).find(|new| {
            let is_used = self.activated.contains(&(*new, Epoch(0)));
            self.view(colony).is_reserved(*new) && !is_used
        });
        if let (Some(new), true) = (unused, some.len() > 1) {
            let count = 1 + self.random.below(some.len() - 1);
            let cells = some[..count].to_vec();
            self.append(colony, HostingRecord::Split { bee, cells, new }, None)
        }
    }

    fn steps(&mut self, colony: usize, cancelled: &BTreeSet<BeeId>) -> Vec<Step> {
        let log = &self.colonies[colony];
        let mut view = self.view(colony).clone();
        if self.broken == Broken::NoFence {
            // lets the replica look as new as it has to be
            while view.index() < log.hosting.known() {
                view.apply(&Proposal::Release { bee: BeeId(u64::MAX) });
            }
        }
        let mut next = steps(id(colony), &log.hosting, &view, cancelled, &[]);
        if self.broken == Broken::DropWhenSent {
            let sent = next.iter().filter_map(|step| match step {
                Step::Send(frame) => Some(frame.bee),
                _ => None,
            });
            let drops = sent.map(|bee| Step::Append(HostingRecord::Drop { bee, view: view.index() }));
            let drops: Vec<Step> = drops.collect();
            next.extend(drops)
        }
        if self.broken == Broken::CommitBeforeStage {
            let commits = next.iter().filter_map(|step| match step {
                Step::Send(frame) => {
                    Some(Proposal::Commit { bee: frame.bee, epoch: Epoch(frame.epoch.0 - 1), to: frame.to })
                }
                _ => None,
            });
            let commits: Vec<Step> = commits.map(Step::Propose).collect();
            next.extend(commits)
        }
        if self.broken == Broken::BusyChanges {
            for (bee, hosted) in log
                .hosting
                .bees()
                .filter(|(bee, hosted)| hosted.frozen.is_none() && log.hosting.is_busy(*bee))
            {
                let entry =
                    view.bee(bee).filter(|entry| entry.colony == id(colony) && entry.epoch == hosted.epoch);
                if let Some(Aim::Colony(to)) = entry.and_then(|entry| entry.aim) {
                    next.push(Step::Append(HostingRecord::Freeze { bee, to, view: view.index() }))
                }
            }
        }
        next
    }

    fn take(&mut self, colony: usize, step: Step) {
        match step {
            Step::Append(record) => self.append(colony, record, None),
            Step::Propose(proposal) => self.net.push(Packet::Propose(proposal)),
            Step::Send(frame) => {
                let cells = self.colonies[colony].cells[&frame.bee].clone();
                self.net.push(Packet::Copy(frame, cells))
            }
        }
    }

    fn deliver(&mut self, packet: Packet) {
        match packet {
            Packet::Propose(proposal) => self.propose(&proposal),
            Packet::Copy(frame, cells) => {
                let colony = frame.to.0 as usize - 1;
                let (log, view) = (&self.colonies[colony].hosting, self.view(colony));
                if let Some(record) = stage(frame.to, log, view, &frame) {
                    self.append(colony, record, Some(cells))
                }
            }
        }
    }

    pub(crate) fn step(&mut self) {
        let colony = self.random.below(self.colonies.len());
        match self.random.below(100) {
            0..20 => {
                let newest = self.registry.len() - 1;
                let view = self.colonies[colony].view;
                self.colonies[colony].view = view + self.random.below(newest - view + 1)
            }
            // another leader, whose replica is older
            20..24 => {
                let view = self.colonies[colony].view;
                self.colonies[colony].view = view - self.random.below((view + 1).min(8))
            }
            24..50 => {
                let cancelled =
                    self.colonies[colony].cells.keys().copied().filter(|_| self.random.one_in(12));
                let cancelled = cancelled.collect();
                let next = self.steps(colony, &cancelled);
                if let Some(step) = self.random.pick(&next) {
                    self.take(colony, step)
                }
            }
            50..75 if !self.net.is_empty() => {
                let at = self.random.below(self.net.len());
                match self.random.below(8) {
                    // doubled, lost
                    0 => self.deliver(self.net[at].clone()),
                    1 => drop(self.net.swap_remove(at)),
                    _ => {
                        let packet = self.net.swap_remove(at);
                        self.deliver(packet)
                    }
                }
            }
            75..81 => {
                let count = 1 + self.random.below(2);
                let cells = (0..count).map(|_| CellId(self.random.below(CELLS as usize) as u64)).collect();
                self.net.push(Packet::Propose(Proposal::Claim { app: APP, cells, colony: id(colony) }))
            }
            81..85 => {
                let to = id(self.random.below(self.colonies.len()));
                let bees = self.newest().bees_at(id(colony));
                let bees: Vec<BeeId> = bees.collect();
                if let Some(bee) = self.random.pick(&bees) {
                    let epoch = self.newest().bee(bee).unwrap().epoch;
                    self.net.push(Packet::Propose(Proposal::Aim { bee, epoch, colony: to }))
                }
            }
            85..89 => self.change(colony),
            _ => self.work(colony),
        }
    }

    /// I9: without further faults, everything comes to rest: each bee is where the registry says.
    pub(crate) fn rest(&mut self) {
        for _ in 0..200 {
            let mut is_quiet = true;
            for colony in 0..self.colonies.len() {
                self.colonies[colony].view = self.registry.len() - 1;
                for _ in 0..40 {
                    let next = self.steps(colony, &BTreeSet::new());
                    is_quiet &= next.is_empty();
                    match next.iter().find(|step| matches!(step, Step::Append(_))) {
                        Some(step) => self.take(colony, step.clone()),
                        None => {
                            next.into_iter().for_each(|step| self.take(colony, step));
                            break;
                        }
                    }
                }
            }
            let net = std::mem::take(&mut self.net);
            is_quiet &= net.is_empty();
            net.into_iter().for_each(|packet| self.deliver(packet));
            if is_quiet {
                break;
            }
        }

        let registry = self.newest().clone();
        let mut bees = 0;
        for (at, colony) in self.colonies.iter().enumerate() {
            assert_eq!(colony.hosting.untold(), [] as [Untold; 0], "I9");
            assert_eq!(colony.hosting.staged().count(), 0, "I9");
            for (bee, hosted) in colony.hosting.bees() {
                let entry = registry.bee(bee).unwrap_or_else(|| panic!("I9: {bee} is gone"));
                assert_eq!(
                    (entry.colony, entry.epoch, hosted.frozen),
                    (id(at), hosted.epoch, None),
                    "I9: {bee}"
                );
                assert_eq!(entry.aim, None, "I9: {bee}");
                bees += 1;
                for (cell, value) in &colony.cells[&bee] {
                    assert_eq!(registry.owner(APP, *cell), Some(bee), "{cell:?}");
                    assert_eq!(*value, self.handled[cell], "{cell:?} has lost what it handled");
                }
            }
        }
        assert_eq!(bees, registry.bees(), "I9: a bee is nowhere");
        for (cell, value) in self.handled.iter().filter(|(_, value)| **value > 0) {
            let holds = |colony: &Colony| colony.cells.values().any(|cells| cells.get(cell) == Some(value));
            assert!(self.colonies.iter().any(holds), "{cell:?} has lost what it handled");
        }
    }
}
