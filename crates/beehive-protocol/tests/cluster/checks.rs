//! The checkers. Their names are those of the invariants in the panics: `OneOwner`, `True`, `Complete`, `NotLost`, `Order`,
//! `AtMostOnce`, `Atomic` (a cell has what all earlier messages left), `NoPhantom`, `OneChange`, `OncePerEpoch`, `Fence`
//! and `Rest`.

use crate::messages::{message_of, value_of};
use crate::mutant::Mutant;
use crate::world::{Proposed, World, at, id};
use beehive_protocol::{
    AppId, BeeId, CellId, Decision, Emit, Epoch, LaneId, LogState, Part, Proposal, Record, Seq,
};
use std::collections::{BTreeMap, BTreeSet};

type Cell = (AppId, CellId);

/// A message that a committed record emitted, for one app.
#[derive(Clone, Debug)]
pub(crate) struct Emission {
    pub(crate) tag: u32,
    pub(crate) app: AppId,
    /// The cell that sent it.
    pub(crate) source: Cell,
    pub(crate) cells: Vec<CellId>,
}

/// What has happened, according to the committed records.
#[derive(Default)]
pub(crate) struct History {
    tags: u32,
    /// The emitted messages, in order, and whether they were handled.
    emitted: BTreeMap<(u32, AppId), (Emission, bool)>,
    /// For each cell, the number of messages that it has handled since it was last emptied.
    values: BTreeMap<Cell, u64>,
    /// The bees that became active, with their epochs.
    activated: BTreeSet<(BeeId, Epoch)>,
    /// Number of bees that the registry has created.
    pub(crate) created: u64,
}

impl History {
    pub(crate) fn next_tag(&mut self) -> u32 {
        self.tags += 1;
        self.tags
    }

    /// Returns the number of messages emitted, and of those handled.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.emitted.len(), self.emitted.values().filter(|(_, is_handled)| *is_handled).count())
    }

    pub(crate) fn decided(&mut self, _: &Proposal, decision: &Decision) {
        if let Decision::Owner { created: true, .. } = decision {
            self.created += 1
        }
    }

    /// I7: a bee takes part in one change at a time.
    pub(crate) fn one_change_at_a_time(&self, log: &LogState, record: &Record) {
        let free = |app: &AppId, bee: &BeeId| log.is_active(*app, *bee) && !log.is_busy(*bee);
        let holds = match record {
            Record::Freeze { app, bee, .. }
            | Record::Split { app, bee, .. }
            | Record::Release { app, bee, .. } => free(app, bee),
            Record::Fuse { app, from, into, .. } => free(app, from) && free(app, into),
            _ => true,
        };
        assert!(holds, "OneChange (I7): {record:?}")
    }

    fn activate(&mut self, bee: BeeId, epoch: Epoch) {
        assert!(
            self.activated.insert((bee, epoch)),
            "OncePerEpoch (I8): {bee} becomes active twice in {epoch:?}"
        )
    }
}

impl World {
    /// A record has taken effect in the log of a colony.
    pub(crate) fn committed(&mut self, colony: usize, proposed: &Proposed) {
        let record = &proposed.entry.record;
        let log = &self.colonies[colony].committed;
        let fence_is_checked = !matches!(
            self.mutant,
            Some(Mutant::Unfenced(kind)) if !crate::walk::is_harmless(kind)
        );
        if fence_is_checked && self.mutant != Some(Mutant::ReleaseToldUnfenced) {
            assert!(log.known >= record.view(), "Fence (I6): {record:?} does not raise it")
        }
        if let Some(message) = &proposed.handled {
            let Record::Turn(works) = record else { panic!("only works handle messages") };
            let bee = works[0].bee;
            let key = (message.tag, message.app);
            let (emission, _) = match self.history.emitted.get(&key) {
                Some((emission, is_handled)) => {
                    assert!(!is_handled, "AtMostOnce: {emission:?} is handled twice");
                    (emission.clone(), is_handled)
                }
                None => panic!("NoPhantom (I11): {message:?} was never emitted"),
            };
            let earlier =
                self.history.emitted.range(..key).map(|(_, (earlier, handled))| (earlier, *handled));
            for (earlier, is_handled) in earlier {
                let before = earlier.app == emission.app
                    && earlier.source == emission.source
                    && earlier.tag < emission.tag
                    && earlier.cells.iter().any(|cell| emission.cells.contains(cell));
                assert!(!before || is_handled, "Order (I5): {emission:?} overtakes {earlier:?}")
            }
            for cell in &message.cells {
                let value = self.history.values.entry((message.app, *cell)).or_default();
                *value = if message.empties { 0 } else { *value + 1 };
                let has = value_of(log, message.app, bee, *cell);
                assert_eq!(has, *value, "Atomic: {bee} of {} has not what {cell:?} handled", id(colony))
            }
            if let Some((_, is_handled)) = self.history.emitted.get_mut(&key) {
                *is_handled = true
            }
        }
        for emission in &proposed.emitted {
            self.history.emitted.insert((emission.tag, emission.app), (emission.clone(), false));
        }
        match record {
            Record::Create { bee, .. } => self.history.activate(*bee, Epoch(0)),
            Record::Split { new, .. } => self.history.activate(*new, Epoch(0)),
            Record::Adopt { bee, epoch, .. } | Record::Thaw { bee, epoch, .. } => {
                self.history.activate(*bee, *epoch)
            }
            _ => {}
        }
    }

    /// Checks the invariants that hold in every state.
    pub(crate) fn check(&self) {
        self.check_owners();
        if self.random_check() {
            self.check_tables();
            self.check_outboxes()
        }
    }

    /// The costlier checks are made now and then.
    fn random_check(&self) -> bool {
        self.counts.values().sum::<u64>().is_multiple_of(8)
    }

    fn check_owners(&self) {
        let mut owned = BTreeSet::new();
        for (at, colony) in self.colonies.iter().enumerate() {
            for ((app, bee), image) in colony.committed.bees.iter().filter(|(_, image)| !image.is_frozen()) {
                for cell in image.cells.iter() {
                    assert!(
                        owned.insert((*app, *cell)),
                        "OneOwner (I1): {cell:?} of {app:?} has two owners, one is {bee} of {}",
                        id(at)
                    )
                }
            }
        }
    }

    /// I2 and I3: the tables of a bee say what its cells have handled.
    fn check_tables(&self) {
        let mut ids: BTreeMap<(LaneId, Seq, AppId), (u32, AppId)> = BTreeMap::new();
        for emit in self.open() {
            let message = message_of(emit);
            ids.insert((message.lane, message.seq, message.app), (message.tag, message.app));
        }
        for colony in &self.colonies {
            for ((app, bee), image) in colony.committed.bees.iter().filter(|(_, image)| !image.is_frozen()) {
                for ((lane, seq, to), tag) in &ids {
                    let Some((emission, is_handled)) = self.history.emitted.get(tag) else { continue };
                    let concerns = to == app && emission.cells.iter().all(|cell| image.cells.contains(cell));
                    if !concerns {
                        continue;
                    }
                    let is_seen = image.seen.contains(*lane, *seq, Part::WHOLE);
                    assert!(!is_seen || *is_handled, "True (I2): {bee} takes {emission:?} for handled");
                    assert!(is_seen || !*is_handled, "Complete (I3): {bee} does not remember {emission:?}")
                }
            }
        }
    }

    /// Returns the messages in all outboxes, including those of frozen and staged bees.
    fn open(&self) -> impl Iterator<Item = &Emit> {
        self.colonies.iter().flat_map(|colony| {
            let staged = colony.committed.staged.values().flat_map(|staged| staged.outbox.iter());
            colony.committed.outbox.values().map(|waiting| &waiting.emit).chain(staged)
        })
    }

    /// I4: an emitted message is in an outbox, or is handled.
    fn check_outboxes(&self) {
        let open: BTreeSet<(u32, AppId)> =
            self.open().map(|emit| (message_of(emit).tag, emit.id.app)).collect();
        for (tag, (emission, is_handled)) in &self.history.emitted {
            assert!(*is_handled || open.contains(tag), "NotLost (I4): {emission:?} is in no outbox")
        }
    }

    /// I9: nothing is left to do.
    pub(crate) fn check_rest(&self) {
        self.check_tables();
        let registry = self.newest();
        let mut bees = 0;
        for (position, colony) in self.colonies.iter().enumerate() {
            let log = &colony.committed;
            assert_eq!(log.untold, [], "Rest (I9)");
            assert!(log.staged.is_empty() && log.frozen.is_empty(), "Rest (I9): {:?}", log.staged);
            assert!(log.outbox.is_empty(), "Rest (I9): {:?}", log.outbox);
            for ((app, bee), image) in &log.bees {
                let Some(entry) = registry.bee(*bee) else { panic!("Rest (I9): {bee} is gone") };
                let is_there = (at(entry.colony), entry.epoch, entry.app) == (position, image.epoch, *app);
                assert!(is_there && !image.is_frozen(), "Rest (I9): {bee} is not where the registry says");
                assert_eq!(entry.aim, None, "Rest (I9): {bee}");
                assert_eq!(registry.lanes_of(*bee).count(), 1, "Rest (I9): a lane of {bee} has not ended");
                for lane in image.seen.floors().map(|(lane, _)| lane) {
                    assert!(
                        !registry.is_retired(lane),
                        "Rest (I9): {bee} remembers {lane:?}, which has ended"
                    )
                }
                for cell in image.cells.iter() {
                    assert_eq!(registry.owner(*app, *cell), Some(*bee), "Rest (I9): {cell:?}");
                    let value = self.history.values.get(&(*app, *cell)).copied().unwrap_or_default();
                    assert_eq!(value_of(log, *app, *bee, *cell), value, "Atomic: {cell:?} at rest")
                }
                bees += 1
            }
        }
        assert_eq!(bees, registry.bees(), "Rest (I9): a bee is nowhere");
        for ((app, cell), value) in self.history.values.iter().filter(|(_, value)| **value > 0) {
            let is_held = self.colonies.iter().any(|colony| {
                let mut bees = colony.committed.bees.iter();
                bees.any(|((of, _), image)| of == app && image.cells.contains(cell))
            });
            assert!(is_held, "Atomic: {cell:?} had {value}, and is nowhere")
        }
        for (emission, is_handled) in self.history.emitted.values() {
            assert!(is_handled, "NotLost (I4): {emission:?} is never handled")
        }
    }
}
