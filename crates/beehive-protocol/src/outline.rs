//! The outline of a log's state: what a running leader needs of it for moves and merges.
//!
//! A hive that runs bees does not keep the state of its log, because it has the bees themselves. It keeps an outline: the
//! changes about which the registry must be told, the staged parts of arriving bees, and the frozen bees with their
//! outboxes. The outline follows the committed records that change these. [`changes`](fn@crate::changes) and
//! [`frames`](crate::frames) read it as if it were the log's state.

use crate::{AppId, BeeId, BeeImage, Emits, LaneId, LogState, MessageId, Record, Untold, Waiting};

impl LogState {
    /// Splits off the outline of a log's state. The frozen bees, their outboxes and the staged parts are no longer in the
    /// state.
    pub fn split_outline(&mut self) -> LogState {
        let mut outline = LogState {
            known: self.known,
            untold: self.untold.clone(),
            staged: std::mem::take(&mut self.staged),
            frozen: std::mem::take(&mut self.frozen),
            ..LogState::default()
        };
        outline.bees.extend(self.bees.extract_if(.., |_, image| image.is_frozen()));
        for lane in &outline.frozen {
            let of_lane = self.outbox.extract_if(MessageId::all_of(*lane), |_, _| true);
            outline.outbox.extend(of_lane)
        }
        outline.emitted = self.emitted;
        outline
    }

    /// Lets an outline follow a committed record.
    pub fn follow(&mut self, record: &Record) {
        match record {
            Record::Freeze { .. }
            | Record::Stage { .. }
            | Record::Adopt { .. }
            | Record::Unstage { .. }
            | Record::Drop { .. }
            | Record::Thaw { .. }
            | Record::Told { .. } => self.carry_out(record),
            // the outline does not contain active bees
            Record::Fuse { from, into, view, .. } => {
                self.note(Untold::Fused { from: *from, into: *into }, *view)
            }
            Record::Release { bee, view, .. } => self.note(Untold::Released { bee: *bee }, *view),
            Record::Split { bee, new, cells, view, .. } => {
                self.note(Untold::Split { bee: *bee, cells: cells.clone(), new: *new }, *view)
            }
            _ => {}
        }
        self.known = self.known.max(record.view())
    }

    /// Takes the content of a frozen bee and its outbox out of an outline, as a state of their own, so that the bee can be
    /// divided into [`frames`](crate::frames) while the outline goes on to follow the log.
    pub fn detach(&mut self, app: AppId, bee: BeeId) -> Option<LogState> {
        let image = self.bees.get_mut(&(app, bee)).filter(|image| image.is_frozen())?;
        let shell = BeeImage {
            heir_of: image.heir_of.clone(),
            epoch: image.epoch,
            leaves_for: image.leaves_for,
            ..BeeImage::default()
        };
        let image = Box::new(std::mem::replace(&mut **image, shell));
        let mut detached = LogState { known: self.known, emitted: self.emitted, ..LogState::default() };
        for lane in image.heir_of.iter().copied().chain([LaneId::of_bee(app, bee)]) {
            detached.frozen.insert(lane);
            detached.outbox.extend(self.outbox.extract_if(MessageId::all_of(lane), |_, _| true))
        }
        detached.bees.insert((app, bee), image);
        Some(detached)
    }

    /// Sets the content of a frozen bee, and its outbox in the order in which the messages were emitted.
    pub fn fill(&mut self, (app, bee): (AppId, BeeId), image: BeeImage, outbox: Emits) {
        let Some(frozen) = self.bees.get_mut(&(app, bee)) else { return };
        **frozen = BeeImage { leaves_for: frozen.leaves_for, heir_of: frozen.heir_of.clone(), ..image };
        for emit in outbox.0 {
            self.emitted += 1;
            self.outbox.insert(emit.id, Waiting { order: self.emitted, emit });
        }
    }

    /// Takes a bee that is no longer frozen, or that was adopted, out of an outline, with its outbox in the order in which
    /// the messages were emitted.
    pub fn take_active(&mut self, app: AppId, bee: BeeId) -> Option<(Box<BeeImage>, Emits)> {
        let (_, image) =
            self.bees.extract_if((app, bee)..=(app, bee), |_, image| !image.is_frozen()).next()?;
        let mut outbox: Vec<Waiting> = Vec::new();
        for lane in image.heir_of.iter().chain([&LaneId::of_bee(app, bee)]) {
            outbox.extend(
                self.outbox.extract_if(MessageId::all_of(*lane), |_, _| true).map(|(_, waiting)| waiting),
            )
        }
        outbox.sort_unstable_by_key(|waiting| waiting.order);
        Some((image, Emits(outbox.into_iter().map(|waiting| waiting.emit).collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_state::tests::emit as emit_of;
    use crate::{CellId, ColonyId, Epoch, Op, Redo, Seq, Time, Work, frames};
    use std::sync::Arc;

    const APP: AppId = AppId(0);
    const BEE: BeeId = BeeId(7);

    fn emit(seq: u64) -> crate::Emit {
        emit_of(BEE.0, seq)
    }

    /// A log with a bee that has rows and messages.
    fn log() -> LogState {
        let mut redo = Redo::default();
        redo.push(Op { dict: 0, key: &[1], row: None, value: Some(&[2, 3]) });
        let work = |bee, redo: Redo, emits| {
            Arc::new(Work {
                app: APP,
                bee: BeeId(bee),
                cells: vec![CellId(bee)],
                inputs: Default::default(),
                visits: Vec::new(),
                redo,
                emits: Emits(emits),
                next_seq: Seq(2),
                now: Time::ZERO,
            })
        };
        let mut log = LogState::default();
        log.carry_out(&Record::Turn(vec![
            work(7, redo, vec![emit(0), emit(1)]),
            work(8, Redo::default(), Vec::new()),
        ]));
        log
    }

    fn freeze() -> Record {
        let lanes = vec![LaneId::of_bee(APP, BEE)];
        Record::Freeze { app: APP, bee: BEE, lanes, to: ColonyId(2), view: 5 }
    }

    /// An outline that has followed the records has the same frozen bee as one that is split off the log's state.
    #[test]
    fn an_outline_that_follows_is_the_one_that_is_split_off() {
        let mut whole = log();
        let (image, outbox) = (whole.bees[&(APP, BEE)].clone(), whole.outbox.clone());
        let mut follows = whole.split_outline();
        assert_eq!((follows.bees.len(), whole.bees.len()), (0, 2));
        follows.follow(&freeze());
        let emits = outbox.into_values().map(|waiting| waiting.emit).collect();
        follows.fill((APP, BEE), *image, Emits(emits));

        whole.carry_out(&freeze());
        let split = whole.split_outline();
        assert_eq!((split.known, whole.bees.len(), whole.outbox.len()), (5, 1, 0));
        assert_eq!(frames(&follows, APP, BEE, 100), frames(&split, APP, BEE, 100));

        let thaw = Record::Thaw { app: APP, bee: BEE, epoch: Epoch(1), view: 9 };
        follows.follow(&thaw);
        let (image, emits) = follows.take_active(APP, BEE).expect("it is active");
        assert_eq!((image.epoch, emits.0), (Epoch(1), vec![emit(0), emit(1)]));
        assert_eq!(follows, LogState { known: 9, emitted: follows.emitted, ..LogState::default() });
    }

    /// A bee that is detached has the same copy, and continues with everything.
    #[test]
    fn a_detached_bee_is_complete() {
        let mut whole = log();
        whole.carry_out(&freeze());
        let mut outline = whole.split_outline();
        let parts = frames(&outline, APP, BEE, 100);
        assert_eq!(outline.detach(APP, BeeId(8)), None);
        let mut detached = outline.detach(APP, BEE).expect("it is frozen");
        assert_eq!(frames(&detached, APP, BEE, 100), parts);
        assert!(outline.outbox.is_empty() && outline.bees[&(APP, BEE)].is_frozen());

        let thaw = Record::Thaw { app: APP, bee: BEE, epoch: Epoch(1), view: 9 };
        outline.follow(&thaw);
        outline.take_active(APP, BEE).expect("the outline has no active bees");
        detached.follow(&thaw);
        let (image, emits) = detached.take_active(APP, BEE).expect("it is active");
        assert_eq!((image.epoch, image.state.row_count(), emits.0), (Epoch(1), 1, vec![emit(0), emit(1)]));
        assert!(outline.bees.is_empty() && outline.frozen.is_empty());
    }

    /// A frozen bee stays in the outline until the log says what becomes of it.
    #[test]
    fn a_frozen_bee_cannot_be_taken() {
        let mut whole = log();
        whole.carry_out(&freeze());
        let mut outline = whole.split_outline();
        assert_eq!(outline.take_active(APP, BEE), None);
        outline.follow(&Record::Drop { app: APP, bee: BEE, view: 9 });
        assert!(outline.bees.is_empty() && outline.outbox.is_empty() && outline.frozen.is_empty());
    }

    /// Changes of active bees are noted until the registry knows them.
    #[test]
    fn an_outline_notes_what_the_registry_must_be_told() {
        let mut outline = LogState::default();
        let fuse = |view| Record::Fuse { app: APP, from: BEE, into: BeeId(8), view };
        outline.follow(&fuse(0));
        assert_eq!(outline, LogState::default(), "a log that decides alone tells nobody");
        outline.follow(&fuse(3));
        outline.follow(&Record::Release { app: APP, bee: BeeId(9), floors: Vec::new(), view: 4 });
        assert!(outline.is_busy(BEE) && outline.is_busy(BeeId(9)) && outline.bees.is_empty());
        let what = Untold::Fused { from: BEE, into: BeeId(8) };
        outline.follow(&Record::Told { what, view: 6 });
        assert!(!outline.is_busy(BEE) && outline.is_busy(BeeId(9)) && outline.known == 6);
    }
}
