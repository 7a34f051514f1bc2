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
//! records, so the record `Adopt` is the decision. In a move between two hives, the registry decides
//! whether the target adopts the bee or the source thaws it: see [`changes`](fn@crate::changes).

use crate::{AppId, BeeId, ColonyId, Epoch, LaneId, LogState, MessageId, Record, StagePart};
use std::collections::BTreeMap;

impl LogState {
    pub(crate) fn freeze(&mut self, (app, bee): (AppId, BeeId), lanes: &[LaneId], to: ColonyId) {
        let image = self.bees.entry((app, bee)).or_default();
        debug_assert!(!image.is_frozen(), "{bee} is already about to move");
        image.leaves_for = Some(to);
        let own = LaneId::of_bee(app, bee);
        image.heir_of = lanes.iter().copied().filter(|lane| *lane != own).collect();
        self.frozen.extend(lanes.iter().copied())
    }

    pub(crate) fn thaw(&mut self, app: AppId, bee: BeeId, epoch: Epoch) {
        let Some(image) = self.bees.get_mut(&(app, bee)) else { return };
        (image.leaves_for, image.epoch) = (None, epoch);
        for lane in image.heir_of.iter().chain([&LaneId::of_bee(app, bee)]) {
            self.frozen.remove(lane);
        }
    }

    pub(crate) fn stage(
        &mut self,
        bee: (AppId, BeeId),
        epoch: Epoch,
        part: &StagePart,
        (at, of): (u32, u32),
    ) {
        if let StagePart::Bee(_) = part {
            let staged = self.staged.entry(bee).or_default();
            (staged.parts, staged.of) = (0, of)
        }
        let Some(staged) = self.staged.get_mut(&bee) else { return };
        staged.add(part);
        if let StagePart::Bee(_) = part {
            (staged.bee.epoch, staged.bee.leaves_for) = (epoch, None)
        }
        debug_assert_eq!(staged.parts, at, "the parts of {bee:?} are staged in order");
        staged.parts = at.saturating_add(1)
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
        self.emit(&staged.outbox, None)
    }

    /// Removes a frozen bee and its outbox.
    pub(crate) fn forget_moved(&mut self, app: AppId, bee: BeeId) {
        if self.bees.get(&(app, bee)).is_none_or(|image| !image.is_frozen()) {
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

impl LogState {
    /// Returns the lanes of a bee on which it sends or still has to send: its own one, and those of the bees that merged
    /// into it and whose messages are in the outbox.
    pub fn lanes_of(&self, app: AppId, bee: BeeId) -> Vec<LaneId> {
        let heirs = self.bees.get(&(app, bee)).into_iter().flat_map(|image| image.heir_of.iter().copied());
        let open = heirs.filter(|lane| self.is_waited_on(*lane));
        std::iter::once(LaneId::of_bee(app, bee)).chain(open).collect()
    }

    /// Returns the copy of a frozen bee, in parts of at most `bytes_max` bytes.
    pub(crate) fn copy_of(&self, app: AppId, bee: BeeId, bytes_max: usize) -> Vec<StagePart> {
        let Some(image) = self.bees.get(&(app, bee)) else { return Vec::new() };
        let own = LaneId::of_bee(app, bee);
        let mut outbox = Vec::new();
        for lane in image.heir_of.iter().chain([&own]) {
            outbox.extend(self.outbox.range(MessageId::all_of(*lane)).map(|(_, waiting)| waiting));
            outbox.extend(self.sweeps.range(MessageId::all_of(*lane)).map(|(_, sweep)| &sweep.waiting))
        }
        outbox.sort_unstable_by_key(|waiting| waiting.order);
        let outbox = outbox.into_iter().map(|waiting| waiting.emit.clone());
        StagePart::of_bee(image, &image.state, bytes_max)
            .chain(StagePart::of_outbox(outbox, bytes_max))
            .collect()
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
/// has moved must not end before the old log has dropped it. This is also true if the record that drops it is one of these: until
/// it is committed, the process may crash again, and the next one would find the same frozen copy.
pub fn unfinished_moves(logs: &[&LogState]) -> Vec<(usize, Record)> {
    let mut records = Vec::new();
    for (log, state) in logs.iter().enumerate() {
        for ((app, bee), image) in state.bees.iter().filter(|(_, image)| image.is_frozen()) {
            let (app, bee) = (*app, *bee);
            let has_newer =
                |other: &LogState| other.bees.get(&(app, bee)).is_some_and(|other| other.epoch > image.epoch);

            let record = match logs.iter().any(|other| has_newer(other)) {
                true => Record::Drop { app, bee, view: 0 },
                false => Record::Thaw { app, bee, epoch: image.epoch, view: 0 },
            };
            records.push((log, record))
        }

        let staged = state.staged.keys();
        records.extend(staged.map(|(app, bee)| (log, Record::Unstage { app: *app, bee: *bee, view: 0 })))
    }
    records
}
