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
//!     frame: a copy of the bee ─────────────────────────────────► Stage
//!                                       Commit  ◄──────────────── (proposes)
//!                                   bee is at the target
//!   Drop                                                         Adopt
//!
//!   the registry decides otherwise:   Commit to the source
//!   Thaw                                                         Unstage
//! ```
//!
//! The fence: a record that responds to the state of the registry contains the registry's index, and the log keeps the
//! highest such index. A leader works only while its replica of the registry has reached that index. Otherwise a new
//! leader with an older replica could undo what its predecessor did in response to a newer state.

use crate::{Aim, BeeId, CellId, ColonyId, Epoch, Proposal, RegistryState};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The bees of a colony, in the form in which the registry needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hosting {
    /// The highest index of the registry on which a record of the log is based.
    known: u64,
    /// Changes that the log has decided and that the registry has not yet confirmed.
    untold: Vec<Untold>,
    bees: BTreeMap<BeeId, Hosted>,
    /// Copies of bees that are about to move to this colony, with their epochs.
    staged: BTreeMap<BeeId, Epoch>,
}

/// A bee of a colony.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hosted {
    /// Number of its moves.
    pub epoch: Epoch,
    /// The colony to which it is about to move. Until this is decided, the bee does nothing.
    pub frozen: Option<ColonyId>,
}

/// A change that a log has decided and about which the registry must be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Untold {
    /// A bee has merged into another one.
    Fused {
        /// The bee that ceased to exist.
        from: BeeId,
        /// The bee that took over the cells.
        into: BeeId,
    },
    /// A bee has given some of its cells to a new one.
    Split {
        /// The bee that had the cells.
        bee: BeeId,
        /// The cells.
        cells: Vec<CellId>,
        /// The new bee.
        new: BeeId,
    },
    /// A bee has given back its cells.
    Released {
        /// The bee that ceased to exist.
        bee: BeeId,
    },
}

/// A record that changes which bees a colony has. `view` is the index of the registry on which it is based.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the same everywhere: bees, and the registry's index")]
pub enum HostingRecord {
    /// The colony has a new bee.
    Create { bee: BeeId, view: u64 },
    /// The bee does nothing until the decision whether it moves to colony `to`.
    Freeze { bee: BeeId, to: ColonyId, view: u64 },
    /// The log contains a copy of a bee, which becomes valid if the registry decides so.
    Stage { bee: BeeId, epoch: Epoch, view: u64 },
    /// The copy is not needed.
    Unstage { bee: BeeId, view: u64 },
    /// The copy becomes the bee.
    Adopt { bee: BeeId, view: u64 },
    /// The frozen bee has moved, or no longer exists.
    Drop { bee: BeeId, view: u64 },
    /// The frozen bee stays.
    Thaw { bee: BeeId, epoch: Epoch, view: u64 },
    /// A bee merges into another one.
    Fuse { from: BeeId, into: BeeId, view: u64 },
    /// A bee gives some of its cells to a new one, whose id is reserved.
    Split { bee: BeeId, cells: Vec<CellId>, new: BeeId },
    /// A bee gives back its cells.
    Release { bee: BeeId },
    /// The registry has confirmed a change.
    Told { what: Untold, view: u64 },
}

/// A copy of a bee on its way to another colony. The sender adds the bee's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageFrame {
    /// The colony to which it goes.
    pub to: ColonyId,
    /// The bee.
    pub bee: BeeId,
    /// The epoch of the copy, if it becomes valid.
    pub epoch: Epoch,
    /// The highest index of the registry known to the log of the source.
    pub known: u64,
}

/// A step that the leader of a colony takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It appends a record to the colony's log.
    Append(HostingRecord),
    /// It makes a proposal to the registry.
    Propose(Proposal),
    /// It sends a copy of a bee.
    Send(StageFrame),
}

impl Untold {
    fn concerns(&self, of: BeeId) -> bool {
        match self {
            Untold::Fused { from, into } => *from == of || *into == of,
            Untold::Split { bee, new, .. } => *bee == of || *new == of,
            Untold::Released { bee } => *bee == of,
        }
    }

    fn ended(&self, of: BeeId) -> bool {
        matches!(self, Untold::Fused { from: bee, .. } | Untold::Released { bee } if *bee == of)
    }

    fn is_known(&self, view: &RegistryState) -> bool {
        match self {
            Untold::Fused { from: bee, .. } | Untold::Released { bee } => view.bee(*bee).is_none(),
            Untold::Split { new, .. } => view.bee(*new).is_some(),
        }
    }

    fn proposal(&self) -> Proposal {
        match self {
            Untold::Fused { from, into } => Proposal::Fused { from: *from, into: *into },
            Untold::Split { bee, cells, new } => {
                Proposal::Split { bee: *bee, cells: cells.clone(), new: *new }
            }
            Untold::Released { bee } => Proposal::Release { bee: *bee },
        }
    }
}

impl Hosting {
    /// Returns the highest index of the registry on which a record of the log is based.
    pub fn known(&self) -> u64 {
        self.known
    }

    /// Returns the colony's bees, without the staged copies.
    pub fn bees(&self) -> impl Iterator<Item = (BeeId, Hosted)> {
        self.bees.iter().map(|(bee, hosted)| (*bee, *hosted))
    }

    /// Returns a bee of the colony.
    pub fn bee(&self, bee: BeeId) -> Option<Hosted> {
        self.bees.get(&bee).copied()
    }

    /// Checks whether the bee may handle messages in this colony.
    pub fn is_active(&self, bee: BeeId) -> bool {
        self.bees.get(&bee).is_some_and(|hosted| hosted.frozen.is_none())
    }

    /// Returns the staged copies.
    pub fn staged(&self) -> impl Iterator<Item = (BeeId, Epoch)> {
        self.staged.iter().map(|(bee, epoch)| (*bee, *epoch))
    }

    /// Returns the changes that the registry has not confirmed.
    pub fn untold(&self) -> &[Untold] {
        &self.untold
    }

    /// Checks whether a bee takes part in a change that the registry has not confirmed. Until then, the bee takes part
    /// in no other change.
    pub fn is_busy(&self, bee: BeeId) -> bool {
        self.untold.iter().any(|untold| untold.concerns(bee))
    }

    fn has_ended(&self, bee: BeeId) -> bool {
        self.untold.iter().any(|untold| untold.ended(bee))
    }

    /// Checks whether the registry allows a bee to be split or released now.
    pub fn is_free(&self, bee: BeeId) -> bool {
        self.is_active(bee) && !self.is_busy(bee)
    }

    /// Applies a record.
    pub fn apply(&mut self, record: &HostingRecord) {
        let view = match record {
            HostingRecord::Create { bee, view } => {
                self.bees.insert(*bee, Hosted { epoch: Epoch(0), frozen: None });
                *view
            }
            HostingRecord::Freeze { bee, to, view } => {
                if let Some(hosted) = self.bees.get_mut(bee) {
                    hosted.frozen = Some(*to)
                }
                *view
            }
            HostingRecord::Stage { bee, epoch, view } => {
                self.staged.insert(*bee, *epoch);
                *view
            }
            HostingRecord::Unstage { bee, view } => {
                self.staged.remove(bee);
                *view
            }
            HostingRecord::Adopt { bee, view } => {
                if let Some(epoch) = self.staged.remove(bee) {
                    self.bees.insert(*bee, Hosted { epoch, frozen: None });
                }
                *view
            }
            HostingRecord::Drop { bee, view } => {
                self.bees.remove(bee);
                *view
            }
            HostingRecord::Thaw { bee, epoch, view } => {
                if let Some(hosted) = self.bees.get_mut(bee) {
                    *hosted = Hosted { epoch: *epoch, frozen: None }
                }
                *view
            }
            HostingRecord::Fuse { from, into, view } => {
                if self.bees.contains_key(into) && self.bees.remove(from).is_some() {
                    self.untold.push(Untold::Fused { from: *from, into: *into })
                }
                *view
            }
            HostingRecord::Split { bee, cells, new } => {
                if self.bees.contains_key(bee) {
                    self.bees.insert(*new, Hosted { epoch: Epoch(0), frozen: None });
                    self.untold.push(Untold::Split { bee: *bee, cells: cells.clone(), new: *new })
                }
                0
            }
            HostingRecord::Release { bee } => {
                if self.bees.remove(bee).is_some() {
                    self.untold.push(Untold::Released { bee: *bee })
                }
                0
            }
            HostingRecord::Told { what, view } => {
                self.untold.retain(|untold| untold != what);
                *view
            }
        };
        self.known = self.known.max(view)
    }
}

/// Returns the steps that the leader of `colony` takes next. `view` is its replica of the registry, `cancelled` are the
/// bees whose moves take too long, and `under_way` are its unanswered proposals, which are not made again.
///
/// The steps can be taken in any order, but only one of the steps that append a record about the same bee: the next
/// such step depends on the state that results.
pub fn steps(
    colony: ColonyId,
    log: &Hosting,
    view: &RegistryState,
    cancelled: &BTreeSet<BeeId>,
    under_way: &[Proposal],
) -> Vec<Step> {
    if view.index() < log.known {
        // the replica has not yet reached the index that the log knows
        return Vec::new();
    }
    let now = Now { colony, log, view };
    let mut steps = Vec::new();
    for (bee, hosted) in &log.bees {
        match hosted.frozen {
            None => steps.extend(now.of_active(*bee, hosted.epoch)),
            Some(to) => now.of_frozen(*bee, hosted.epoch, to, cancelled.contains(bee), &mut steps),
        }
    }
    steps.extend(log.untold.iter().map(|untold| match untold.is_known(view) {
        true => Step::Append(HostingRecord::Told { what: untold.clone(), view: view.index() }),
        false => Step::Propose(untold.proposal()),
    }));
    steps.extend(log.staged.iter().filter_map(|(bee, epoch)| now.of_staged(*bee, *epoch)));
    steps.extend(view.bees_at(colony).filter_map(|bee| now.of_missing(bee)));
    steps.retain(|step| !matches!(step, Step::Propose(proposal) if under_way.contains(proposal)));
    steps
}

/// Returns the record that the leader of `colony` appends for a copy of a bee that has arrived, unless the copy is late.
pub fn stage(
    colony: ColonyId,
    log: &Hosting,
    view: &RegistryState,
    frame: &StageFrame,
) -> Option<HostingRecord> {
    let StageFrame { to, bee, epoch, known } = *frame;
    if to != colony || view.index() < log.known.max(known) {
        return None;
    }
    let is_decided = view
        .bee(bee)
        .is_none_or(|entry| entry.epoch > epoch || (entry.epoch == epoch && entry.colony != colony));
    let is_newer = log.bees.get(&bee).is_none_or(|hosted| hosted.epoch < epoch)
        && log.staged.get(&bee).is_none_or(|staged| *staged < epoch);
    let is_wanted = !is_decided && is_newer && !log.has_ended(bee);
    is_wanted.then_some(HostingRecord::Stage { bee, epoch, view: known })
}

struct Now<'a> {
    colony: ColonyId,
    log: &'a Hosting,
    view: &'a RegistryState,
}

impl Now<'_> {
    fn of_active(&self, bee: BeeId, epoch: Epoch) -> Option<Step> {
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
            return Some(Step::Append(HostingRecord::Freeze { bee, to, view }));
        }
        match entry.aim? {
            Aim::Bee(into) if self.log.is_free(into) => {
                Some(Step::Append(HostingRecord::Fuse { from: bee, into, view }))
            }
            _ => None,
        }
    }

    fn of_frozen(&self, bee: BeeId, epoch: Epoch, to: ColonyId, cancel: bool, steps: &mut Vec<Step>) {
        let view = self.view.index();
        match self.view.bee(bee) {
            Some(entry) if entry.epoch == epoch => {
                let is_dead = self.view.colony(to).is_none_or(|colony| colony.is_dead);
                if cancel || is_dead {
                    steps.push(Step::Propose(Proposal::Commit { bee, epoch, to: self.colony }))
                }
                if !is_dead {
                    let (epoch, known) = (epoch.next(), self.log.known);
                    steps.push(Step::Send(StageFrame { to, bee, epoch, known }))
                }
            }
            // a cancelled move; if the bee has moved away and back, the copy that came back is staged
            Some(entry) if entry.epoch > epoch && entry.colony == self.colony => {
                if !self.log.staged.contains_key(&bee) {
                    steps.push(Step::Append(HostingRecord::Thaw { bee, epoch: entry.epoch, view }))
                }
            }
            Some(entry) if entry.epoch < epoch => {}
            _ => steps.push(Step::Append(HostingRecord::Drop { bee, view })),
        }
    }

    fn of_staged(&self, bee: BeeId, epoch: Epoch) -> Option<Step> {
        let view = self.view.index();
        match self.view.bee(bee) {
            Some(entry) if (entry.colony, entry.epoch) == (self.colony, epoch) => {
                Some(Step::Append(HostingRecord::Adopt { bee, view }))
            }
            Some(entry) if entry.epoch.next() == epoch => {
                Some(Step::Propose(Proposal::Commit { bee, epoch: entry.epoch, to: self.colony }))
            }
            Some(entry) if entry.epoch < epoch => None,
            _ => Some(Step::Append(HostingRecord::Unstage { bee, view })),
        }
    }

    /// A bee that has never moved, and that the log does not contain, is new.
    fn of_missing(&self, bee: BeeId) -> Option<Step> {
        let is_new = self.view.bee(bee).is_some_and(|entry| entry.epoch == Epoch(0));
        let is_known = self.log.bees.contains_key(&bee) || self.log.staged.contains_key(&bee);
        let create = is_new && !is_known && !self.log.has_ended(bee);
        create.then_some(Step::Append(HostingRecord::Create { bee, view: self.view.index() }))
    }
}
