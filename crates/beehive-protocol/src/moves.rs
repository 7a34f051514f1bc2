//! The records by which a bee moves from one log to another.
//!
//! ```text
//!   source log                      target log
//!     Freeze      the bee handles no messages, acknowledgments have no effect, the outbox does not change
//!                                     Stage...    a copy of the bee and of its outbox, in parts
//!                                     Adopt       the decision: from now on, the copy is the bee
//!     Drop        the source log forgets the frozen bee and its outbox
//!
//!   or, if the target log commits nothing:
//!                                     Unstage
//!     Thaw        the bee continues in the source log
//! ```
//!
//! The drawing lists the records in the order in which they are appended. Each one is appended after the previous one
//! has been committed, so a crash leaves a prefix of them. [`unfinished_moves`] then returns the records that let the
//! next process finish the move. This is a move within one hive, which has both logs. One process writes all the
//! records, so the record `Adopt` is the decision. In a move between two hives, the registry would have to decide
//! whether the target adopts the bee or the source thaws it.

use crate::{AppId, BeeId, Epoch, LaneId, LogState, MessageId, Record, StagePart};
use std::collections::BTreeMap;

impl LogState {
    pub(crate) fn freeze(&mut self, app: AppId, bee: BeeId, lanes: &[LaneId]) {
        let image = self.bees.entry((app, bee)).or_default();
        debug_assert!(!image.is_frozen, "{bee} is already about to move");
        image.is_frozen = true;
        let own = LaneId::of_bee(app, bee);
        image.heir_of = lanes.iter().copied().filter(|lane| *lane != own).collect();
        self.frozen.extend(lanes.iter().copied())
    }

    pub(crate) fn thaw(&mut self, app: AppId, bee: BeeId) {
        let Some(image) = self.bees.get_mut(&(app, bee)) else { return };
        image.is_frozen = false;
        for lane in image.heir_of.iter().chain([&LaneId::of_bee(app, bee)]) {
            self.frozen.remove(lane);
        }
    }

    pub(crate) fn stage(&mut self, bee: (AppId, BeeId), epoch: Epoch, part: &StagePart) {
        if let StagePart::Bee(_) = part {
            let staged = self.staged.entry(bee).or_default();
            staged.add(part);
            (staged.bee.epoch, staged.bee.is_frozen) = (epoch, false)
        } else if let Some(staged) = self.staged.get_mut(&bee) {
            staged.add(part)
        }
    }

    pub(crate) fn adopt(&mut self, app: AppId, bee: BeeId, epoch: Epoch) {
        let Some(staged) = self.staged.remove(&(app, bee)) else { return };
        debug_assert!(
            !self.bees.contains_key(&(app, bee)),
            "{bee} comes back before its old copy is dropped"
        );
        debug_assert_eq!(staged.bee.epoch, epoch, "the staged parts of {bee} belong to another move");
        let newest = self.newest.entry(app).or_insert(bee);
        *newest = bee.max(*newest);
        self.bees.insert((app, bee), staged.bee);
        self.emit(&staged.outbox)
    }

    /// Removes a frozen bee and its outbox.
    pub(crate) fn forget_moved(&mut self, app: AppId, bee: BeeId) {
        if self.bees.get(&(app, bee)).is_none_or(|image| !image.is_frozen) {
            return;
        }
        let Some(image) = self.bees.remove(&(app, bee)) else { return };
        for lane in image.heir_of.into_iter().chain([LaneId::of_bee(app, bee)]) {
            self.frozen.remove(&lane);
            // A sweep on this lane has not begun: a running sweep has the lane of its app.
            for messages in [ids_of(&self.outbox, lane), ids_of(&self.sweeps, lane)] {
                messages.iter().for_each(|id| {
                    self.outbox.remove(id);
                    self.sweeps.remove(id);
                })
            }
        }
    }
}

fn ids_of<T>(messages: &BTreeMap<MessageId, T>, lane: LaneId) -> Vec<MessageId> {
    messages.range(MessageId::all_of(lane)).map(|(id, _)| *id).collect()
}

/// Returns the records that finish the moves left unfinished by a crashed process, each with the position of its log.
/// The next process must append them before it appends anything else.
///
/// A frozen bee adopted by another log is dropped. All other frozen bees are thawed, and all staged parts are removed.
/// If a bee ended in its new log before the old log dropped it, a restart would thaw the old copy. Therefore a bee that
/// has moved must not end before the old log has dropped it.
pub fn unfinished_moves(logs: &[&LogState]) -> Vec<(usize, Record)> {
    let mut records = Vec::new();
    for (log, state) in logs.iter().enumerate() {
        for ((app, bee), image) in state.bees.iter().filter(|(_, image)| image.is_frozen) {
            let (app, bee) = (*app, *bee);
            let has_newer =
                |other: &LogState| other.bees.get(&(app, bee)).is_some_and(|other| other.epoch > image.epoch);

            let record = match logs.iter().any(|other| has_newer(other)) {
                true => Record::Drop { app, bee },
                false => Record::Thaw { app, bee },
            };
            records.push((log, record))
        }

        let staged = state.staged.keys();
        records.extend(staged.map(|(app, bee)| (log, Record::Unstage { app: *app, bee: *bee })))
    }
    records
}
