//! A run of a journaled bee that is executed, and whose record is not committed yet.

use crate::hive::bee::delivery::Delivery;
use crate::hive::consensus::journal::{Consumed, EntryNumber, Input, InputRuns, MessageId, Visited, Work};
use crate::hive::dispatch::effects::HeldEffects;
use std::sync::Arc;

/// A run of transactions whose effects are held.
pub(crate) struct Executed {
    /// The number of the entry in flight that contains this run, and the part of the entry that describes the
    /// run. `None` if the run changed and sent nothing: no entry contains such a run. Its effects are held
    /// until all earlier entries are committed, because the run has read the state that they left, and until the journal has
    /// confirmed that the hive leads the log.
    pub(crate) entry: Option<(EntryNumber, Arc<Work>)>,
    /// The messages, which are executed again if the record is refused.
    pub(crate) delivery: Delivery,
    /// The messages that this run was the first to consume.
    pub(crate) inputs: Inputs,
    /// For a run without an entry: the handled messages that the log must still record, because they may
    /// arrive again.
    pub(crate) unsaid: Unsaid,
    /// Messages that the bee handled without effect, on committed state, before this run. The run's entry
    /// records them as well.
    pub(crate) says: Option<Consumed>,
    /// The effects, which are held until the record is committed.
    pub(crate) steps: HeldEffects,
    /// Number of the bee's cells that the log knows once this record is committed.
    pub(crate) cells_end: usize,
    /// Whether the run has postponed a message.
    pub(crate) has_postponed: bool,
    /// For a run without an entry: the [confirmation](crate::hive::dispatch::turn::Link::confirm) for which its answers wait; 0
    /// if they wait for none.
    pub(crate) confirmation: u64,
}

/// The messages that a run was the first to consume.
pub(crate) enum Inputs {
    /// The number of the run's inputs, which come first in the run's entry. The entry's other inputs belong to earlier
    /// runs.
    OfEntry(usize),
    /// The inputs of a run without an entry.
    Own(InputRuns),
}

impl Executed {
    /// Returns a run that changed and sent nothing, so that no entry contains it.
    pub(crate) fn without_entry(
        delivery: Delivery,
        (inputs, unsaid): (InputRuns, Unsaid),
        steps: HeldEffects,
        cells_end: usize,
        confirmation: u64,
    ) -> Executed {
        let (inputs, has_postponed) = (Inputs::Own(inputs), false);
        Executed {
            entry: None,
            delivery,
            inputs,
            unsaid,
            says: None,
            steps,
            cells_end,
            has_postponed,
            confirmation,
        }
    }

    /// Returns the entry's number.
    pub(in crate::hive) fn number(&self) -> Option<EntryNumber> {
        self.entry.as_ref().map(|(number, _)| *number)
    }

    /// Returns the part of the entry that describes this run.
    pub(in crate::hive) fn work(&self) -> Option<&Work> {
        self.entry.as_ref().map(|(_, work)| &**work)
    }

    /// Returns the messages that the run was the first to consume.
    pub(in crate::hive) fn inputs(&self) -> &[Input] {
        match &self.inputs {
            Inputs::OfEntry(count) => self.work().and_then(|work| work.inputs.get(..*count)).unwrap_or(&[]),
            Inputs::Own(inputs) => inputs,
        }
    }

    /// Returns the visits that the log must still record.
    pub(in crate::hive) fn visits(&self) -> Option<Visited> {
        let (Unsaid::Open(sweep) | Unsaid::InNextEntry(sweep)) = self.unsaid else { return None };
        sweep.map(|sweep| Visited { sweep, cells: self.delivery.cells.to_vec() })
    }
}

/// Whether an entry records the messages handled by a run that has no entry of its own.
pub(crate) enum Unsaid {
    /// No entry needs to record the messages, because they never arrive again.
    Nothing,
    /// No entry records them yet. If the run has visited the delivery's cells, holds the sweep.
    Open(Option<MessageId>),
    /// The bee's next entry, which is in flight, records them. If the run has visited the delivery's cells, holds the
    /// sweep.
    InNextEntry(Option<MessageId>),
}
