//! The outline of a log, which a running hive in a cluster keeps for moves and merges.

use crate::hive::consensus::journal::{AppId, Epoch, LogState, Record};
use beehive_protocol::BeeId;
use std::collections::BTreeMap;

/// The outline of a log's state ([`LogState::split_outline`]), and the epochs of its bees.
#[derive(Default)]
pub(crate) struct Outline {
    /// The outline. It contains active bees only while a thread that holds the lock has added them, and between the commit of
    /// `Adopt` or `Thaw` and the call of `take_active`.
    pub(crate) log: LogState,
    /// The epochs of the bees that have moved.
    epochs: BTreeMap<(AppId, BeeId), Epoch>,
}

impl Outline {
    /// Splits off the outline of a log's state.
    pub(crate) fn split(state: &mut LogState) -> Outline {
        let moved = state.bees.iter().filter(|(_, image)| image.epoch > Epoch(0));
        let epochs = moved.map(|(bee, image)| (*bee, image.epoch)).collect();
        Outline { log: state.split_outline(), epochs }
    }

    /// Returns the epoch of a bee of the log.
    pub(crate) fn epoch(&self, app: AppId, bee: BeeId) -> Epoch {
        self.epochs.get(&(app, bee)).copied().unwrap_or_default()
    }

    /// Lets the outline follow a committed record. Returns whether the record changes the outline.
    pub(crate) fn follow(&mut self, record: &Record) -> bool {
        if record.view() == 0 {
            return false;
        }
        self.log.follow(record);
        match record {
            // the log creates the outline of a frozen bee, but does not know its epoch
            Record::Freeze { app, bee, .. } => {
                let epoch = self.epoch(*app, *bee);
                if let Some(image) = self.log.bees.get_mut(&(*app, *bee)) {
                    image.epoch = epoch
                }
            }
            Record::Adopt { app, bee, epoch, .. } | Record::Thaw { app, bee, epoch, .. } => {
                self.epochs.insert((*app, *bee), *epoch);
            }
            Record::Drop { app, bee, .. }
            | Record::Release { app, bee, .. }
            | Record::Fuse { app, from: bee, .. } => {
                self.epochs.remove(&(*app, *bee));
            }
            _ => {}
        }
        true
    }
}
