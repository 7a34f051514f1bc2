//! The next steps of a colony: what its leader appends, proposes and sends in response to the state of the registry.
//!
//! No coordinator controls moves and merges. The registry states where each bee has to be; the log of a colony states
//! which bees the colony has. [`steps`] compares the two and returns the missing steps. All steps are idempotent, so a
//! leader may take them in any order, lose some, repeat some, and start again after a crash.
//!
//! ```text
//!   log of the source                     registry               log of the target
//!                                   bee is aimed at target
//!   Freeze
//!     frames: a copy of the bee ────────────────────────────────► Stage, for each part
//!                                       Commit  ◄──────────────── (proposes)
//!                                   bee is at the target
//!   Drop                                                         Adopt
//!
//!   the registry decides otherwise:   Commit to the source
//!   Thaw                                                         Unstage
//! ```
//!
//! A bee merges, splits and ends by one record (`Fuse`, `Split`, `Release`) in its log. The registry is told until it
//! knows ([`Untold`](crate::Untold)), and `Told` says that it does. The log forgets the lanes of bees that have ended
//! ([`forget`]) when the registry says that they have.
//!
//! The fence: a record that responds to the state of the registry contains the registry's index, and the log keeps the
//! highest such index ([`LogState::known`]). A leader works only while its replica of the registry has reached that
//! index. Otherwise a new leader with an older replica could undo what its predecessor did in response to a newer state.

use crate::codec::encode_many;
use crate::{
    Aim, AppId, BeeId, BeeImage, CellHasher, CellId, ColonyId, Epoch, LaneId, LogState, Proposal, Record,
    RegistryState, Seq, StagePart,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Part of the copy of a bee on its way to another colony.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageFrame {
    /// The colony to which it goes.
    pub to: ColonyId,
    /// The app of the bee.
    pub app: AppId,
    /// The bee.
    pub bee: BeeId,
    /// The epoch of the copy, if it becomes valid.
    pub epoch: Epoch,
    /// The copy: a hash of all its parts. Another leader of the source may divide the bee into other parts, because it
    /// remembers other lanes that have ended. Parts of two copies do not fit together.
    pub copy: u64,
    /// The part.
    pub part: StagePart,
    /// Number of parts before this one.
    pub at: u32,
    /// Number of parts in all.
    pub of: u32,
    /// The highest index of the registry known to the log of the source.
    pub known: u64,
}

/// A step that the leader of a colony takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It appends a record to the colony's log.
    Append(Record),
    /// It makes a proposal to the registry.
    Propose(Proposal),
    /// It sends the copy of a frozen bee to a colony (see [`frames`]).
    Send {
        /// The app of the bee.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The colony.
        to: ColonyId,
    },
}

/// What a leader knows: its colony, the state of the colony's log, and its replica of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Leader<'a> {
    /// The colony that it leads.
    pub colony: ColonyId,
    /// The state of the colony's log.
    pub log: &'a LogState,
    /// Its replica of the registry.
    pub view: &'a RegistryState,
}

/// Returns the steps that a leader takes next. `cancelled` are the bees whose moves take too long, and `under_way` are
/// its unanswered proposals, which are not made again.
///
/// The steps can be taken in any order, but only one of the steps that append a record about the same bee: the next
/// such step depends on the state that results. A leader proposes and sends only what follows from committed records.
pub fn steps(leader: Leader<'_>, cancelled: &BTreeSet<BeeId>, under_way: &[Proposal]) -> Vec<Step> {
    let mut steps = changes(leader, cancelled, under_way);
    if leader.may_work() {
        let has_aim = |bee: &BeeId| leader.view.bee(*bee).is_some_and(|entry| entry.aim.is_some());
        let others = leader.view.bees_at(leader.colony).filter(|bee| !has_aim(bee));
        steps.extend(others.filter_map(|bee| leader.of_missing(bee)))
    }
    steps
}

/// Returns the same as [`steps`], except for new bees that have no aim. Visits the bees of the log and the aims of the
/// registry, but not the bees of the registry. A leader that creates new bees when they are needed calls this, with an
/// [outline](LogState::split_outline) of its log that contains only the bees that take part in a change.
pub fn changes(leader: Leader<'_>, cancelled: &BTreeSet<BeeId>, under_way: &[Proposal]) -> Vec<Step> {
    let Leader { colony, log, view } = leader;
    let mut steps = Vec::new();
    if !leader.may_work() {
        return steps;
    }
    for ((app, bee), image) in &log.bees {
        match image.leaves_for {
            None => steps.extend(leader.of_active(*app, *bee, image.epoch)),
            Some(to) => leader.of_frozen((*app, *bee), image.epoch, to, cancelled.contains(bee), &mut steps),
        }
    }
    steps.extend(log.untold.iter().map(|untold| match untold.is_known(view) {
        true => Step::Append(Record::Told { what: untold.clone(), view: view.index() }),
        false => Step::Propose(untold.proposal()),
    }));
    steps.extend(log.staged.keys().filter_map(|(app, bee)| leader.of_staged(*app, *bee)));
    steps.extend(view.aimed_at(colony).filter_map(|bee| leader.of_missing(bee)));
    steps.retain(|step| !matches!(step, Step::Propose(proposal) if under_way.contains(proposal)));
    steps
}

/// Returns the parts of the copy of a frozen bee, in order. The target needs all of them, and accepts each only after the
/// previous one, so the source sends them again until the registry has decided. A part has at most `bytes_max` bytes,
/// unless a single row or message is larger. All hives must use the same maximum.
pub fn frames(log: &LogState, app: AppId, bee: BeeId, bytes_max: usize) -> Vec<StageFrame> {
    let Some((image, to)) = log.bees.get(&(app, bee)).and_then(|image| Some((image, image.leaves_for?)))
    else {
        return Vec::new();
    };
    let parts = log.copy_of(app, bee, bytes_max);
    let (epoch, known, of) = (image.epoch.next(), log.known, parts.len() as u32);
    let mut hasher = CellHasher::new(0);
    parts.iter().for_each(|part| hasher.bytes(&encode_many(part)));
    let copy = hasher.finish();
    let frame = |(at, part)| StageFrame { to, app, bee, epoch, copy, part, at, of, known };
    (0..).zip(parts).map(frame).collect()
}

/// Returns the record that a leader appends for a part of a copy that has arrived, unless the part is late or early.
/// `staging` is the copy to which the staged parts belong, if the leader knows it. If they belong to another copy, staging
/// begins anew.
pub fn stage(leader: Leader<'_>, frame: &StageFrame, staging: Option<u64>) -> Option<Record> {
    let Leader { colony, log, view } = leader;
    let StageFrame { to, app, bee, epoch, copy, at, of, known, .. } = *frame;
    if to != colony || !leader.may_work() || view.index() < known {
        return None;
    }
    // another hive may send anything: what follows relies on these
    let is_first = matches!(frame.part, StagePart::Bee(_));
    if (at == 0) != is_first || at >= of || known == 0 {
        return None;
    }
    let entry = view.bee(bee)?;
    let is_possible = entry.app == app && (entry.epoch == epoch || entry.epoch.next() == epoch);
    let is_decided = !is_possible || (entry.epoch == epoch && entry.colony != colony);
    let is_newer = log.bees.get(&(app, bee)).is_none_or(|image| image.epoch < epoch);
    let is_next = match log.staged.get(&(app, bee)) {
        Some(staged) if staged.bee.epoch == epoch && staging == Some(copy) => {
            (at, of) == (staged.parts, staged.of)
        }
        // A complete copy may already have been committed by the registry.
        Some(staged) if staged.bee.epoch == epoch => at == 0 && !staged.is_complete(),
        Some(staged) => at == 0 && staged.bee.epoch < epoch,
        None => at == 0,
    };
    let is_wanted = !is_decided && is_newer && is_next && !log.has_ended(bee);
    let part = || frame.part.clone();
    is_wanted.then(|| Record::Stage { app, bee, epoch, part: part(), at, of, view: known })
}

/// Returns the record by which a bee gives back its cells, if it may: they are empty, nothing that it sent is unhandled,
/// and no sender will resend what it has handled.
pub fn release(leader: Leader<'_>, app: AppId, bee: BeeId) -> Option<Record> {
    let image = leader.free(app, bee)?;
    let is_empty = image.state.row_count() == 0 && image.seen.lanes_above().next().is_none();
    let is_over = is_empty && !leader.has_open(app, bee);
    let lasting = image.seen.floors().filter(|(lane, _)| lane.is_lasting());
    let floors: Vec<(LaneId, Seq)> = lasting.collect();
    is_over.then(|| Record::Release { app, bee, floors, view: leader.view.index() })
}

/// Returns the record by which a bee gives some of its cells to a new one, if it may: it keeps some, nothing that it sent
/// is unhandled, and an id is reserved for its colony. `keys` are the dictionaries and the encoded keys of the cells.
pub fn split(
    leader: Leader<'_>,
    app: AppId,
    bee: BeeId,
    cells: Vec<CellId>,
    keys: Vec<(u32, Vec<u8>)>,
) -> Option<Record> {
    let image = leader.free(app, bee)?;
    let given: BTreeSet<CellId> = cells.iter().copied().collect();
    // the registry lists all cells of the bee, so it can split them
    let is_known = given.iter().all(|cell| leader.view.owner(app, *cell) == Some(bee));
    let some_stay = image.cells.iter().any(|cell| !given.contains(cell));
    let are_held = !given.is_empty() && given.iter().all(|cell| image.cells.contains(cell));
    if !is_known || !some_stay || !are_held || leader.has_open(app, bee) {
        return None;
    }
    let new = leader.unused_ids().next()?;
    Some(Record::Split { app, bee, new, cells, keys, view: leader.view.index() })
}

/// Returns what a leader says about lanes: a record by which the log forgets those that the registry says have ended, unless
/// a frozen bee remembers them, and proposals about those of its bees on which nothing is unhandled any more. Visits all
/// tables of the log.
pub fn forget(leader: Leader<'_>) -> Vec<Step> {
    let Leader { colony, log, view } = leader;
    let mut steps = Vec::new();
    if !leader.may_work() {
        return steps;
    }
    let lanes_of = |image: &BeeImage| image.seen.floors().map(|(lane, _)| lane).collect::<Vec<_>>();
    let images = || log.bees.values().map(|image| &**image);
    let mut lanes: BTreeSet<LaneId> = images().flat_map(lanes_of).collect();
    lanes.extend(log.seen.floors().map(|(lane, _)| lane));
    // a lane that the registry does not know has not ended
    lanes.retain(|lane| view.is_retired(*lane));
    // The copy of a frozen bee must not change: its parts are sent several times, perhaps by several leaders.
    images().filter(|image| image.is_frozen()).flat_map(lanes_of).for_each(|lane| {
        lanes.remove(&lane);
    });
    let lanes: Vec<LaneId> = lanes.into_iter().collect();
    if !lanes.is_empty() {
        steps.push(Step::Append(Record::Retire { lanes, view: view.index() }))
    }
    for ((app, bee), image) in &log.bees {
        let is_here =
            view.bee(*bee).is_some_and(|entry| (entry.colony, entry.epoch) == (colony, image.epoch));
        if !is_here || leader.free(*app, *bee).is_none() {
            continue;
        }
        let current = view.lane_of(*bee);
        let ended = view.lanes_of(*bee).filter(|lane| Some(*lane) != current && !log.is_waited_on(*lane));
        steps.extend(ended.map(|lane| Step::Propose(Proposal::Retire { lane })))
    }
    steps
}

impl<'a> Leader<'a> {
    /// Checks whether the replica has reached the index that the log knows.
    pub fn may_work(self) -> bool {
        self.view.index() >= self.log.known
    }

    /// Returns a bee that may take part in a change.
    fn free(self, app: AppId, bee: BeeId) -> Option<&'a BeeImage> {
        let image = self.log.bees.get(&(app, bee)).filter(|image| !image.is_frozen())?;
        (self.may_work() && !self.log.is_busy(bee)).then_some(image)
    }

    /// Checks whether something that a bee sent is unhandled.
    fn has_open(self, app: AppId, bee: BeeId) -> bool {
        self.log.lanes_of(app, bee).into_iter().any(|lane| self.log.is_waited_on(lane))
    }

    /// Returns the ids that are reserved for the colony, and that its log has not used.
    pub fn unused_ids(self) -> impl Iterator<Item = BeeId> + use<'a> {
        let log = self.log;
        // the log has used an id that the registry still lists if the registry was not told yet
        self.view.reserved(self.colony).filter(move |id| !log.is_busy(*id))
    }

    fn of_active(self, app: AppId, bee: BeeId, epoch: Epoch) -> Option<Step> {
        let view = self.view.index();
        let entry = self.view.bee(bee).filter(|entry| (entry.colony, entry.epoch) == (self.colony, epoch))?;
        if self.log.is_busy(bee) {
            return None;
        }
        let to = match entry.aim? {
            Aim::Colony(to) => to,
            Aim::Bee(target) => self.view.bee(self.view.root(target))?.colony,
        };
        if to != self.colony {
            let lanes = self.log.lanes_of(app, bee);
            return Some(Step::Append(Record::Freeze { app, bee, lanes, to, view }));
        }
        match entry.aim? {
            Aim::Bee(into) if self.free(app, into).is_some() => {
                Some(Step::Append(Record::Fuse { app, from: bee, into, view }))
            }
            _ => None,
        }
    }

    fn of_frozen(
        self,
        (app, bee): (AppId, BeeId),
        epoch: Epoch,
        to: ColonyId,
        is_cancelled: bool,
        steps: &mut Vec<Step>,
    ) {
        let view = self.view.index();
        match self.view.bee(bee) {
            Some(entry) if entry.epoch == epoch => {
                let is_dead = self.view.colony(to).is_none_or(|colony| colony.is_dead);
                if is_cancelled || is_dead {
                    steps.push(Step::Propose(Proposal::Commit { bee, epoch, to: self.colony }))
                }
                if !is_dead {
                    steps.push(Step::Send { app, bee, to })
                }
            }
            // a cancelled move, unless the bee has moved away and back: then the copy that came back is staged
            Some(entry) if entry.epoch > epoch && entry.colony == self.colony => {
                let record = match self.log.staged.contains_key(&(app, bee)) {
                    true => Record::Drop { app, bee, view },
                    false => Record::Thaw { app, bee, epoch: entry.epoch, view },
                };
                steps.push(Step::Append(record))
            }
            Some(entry) if entry.epoch < epoch => {}
            _ => steps.push(Step::Append(Record::Drop { app, bee, view })),
        }
    }

    fn of_staged(self, app: AppId, bee: BeeId) -> Option<Step> {
        let view = self.view.index();
        let staged = self.log.staged.get(&(app, bee))?;
        let epoch = staged.bee.epoch;
        match self.view.bee(bee) {
            Some(entry) if (entry.colony, entry.epoch) == (self.colony, epoch) => {
                // an old copy of the bee is dropped first
                let is_free = !self.log.bees.contains_key(&(app, bee));
                is_free.then_some(Step::Append(Record::Adopt { app, bee, epoch, view }))
            }
            Some(entry) if entry.epoch.next() == epoch => {
                let commit = Proposal::Commit { bee, epoch: entry.epoch, to: self.colony };
                staged.is_complete().then_some(Step::Propose(commit))
            }
            Some(entry) if entry.epoch < epoch => None,
            _ => Some(Step::Append(Record::Unstage { app, bee, view })),
        }
    }

    /// A bee that has never moved, and that the log does not contain, is new.
    fn of_missing(self, bee: BeeId) -> Option<Step> {
        let entry = self.view.bee(bee).filter(|entry| entry.epoch == Epoch(0))?;
        let key = (entry.app, bee);
        let is_known = self.log.bees.contains_key(&key) || self.log.staged.contains_key(&key);
        let create = !is_known && !self.log.has_ended(bee);
        create.then_some(Step::Append(Record::Create { app: entry.app, bee, view: self.view.index() }))
    }
}
