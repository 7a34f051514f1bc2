//! The canonical form of a list of actions: sorts consecutive field settings and tracks the selected queue.

use alloc::vec::Vec;

use super::action::{Action, Actions};
use super::canonical_action::{self as meaning, standard};
use super::canonical_field::Field;
use super::extension::{Extended, NiciraAction};
use crate::encode::EncodeError;
use crate::version::Version;

/// The queue that outputs use.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Queue {
    /// The queue that was selected before these actions.
    #[default]
    Inherited,
    /// The packet's original queue, restored by `pop_queue`.
    First,
    /// The queue with this number.
    Selected(u32),
}

/// Tags of the parts of a form, so parts of different kinds cannot be confused.
mod part {
    pub(super) const ACTION: u8 = 0;
    pub(super) const FIELD: u8 = 1;
    pub(super) const QUEUE: u8 = 2;
}

/// Builds the form of a list of actions.
#[derive(Default)]
pub(super) struct Sequence {
    bytes: Vec<u8>,
    /// The fields that were set since the last action of another kind, each field once.
    run: Vec<Field>,
    /// The selected queue. `told` is the queue that was last written to the form.
    queue: Queue,
    told: Queue,
    /// Whether a later setting replaces an earlier one of the same field completely, including bits outside
    /// of its mask.
    replaces: bool,
}

impl Sequence {
    /// Creates a sequence for an action set, where the last setting of a field replaces earlier ones.
    pub(super) fn of_set() -> Self {
        Self { replaces: true, ..Self::default() }
    }

    /// Returns the form.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_run();
        self.tell_queue();
        self.bytes
    }

    /// Adds actions.
    pub(super) fn actions(&mut self, actions: &Actions<'_>, version: Version) -> Result<(), EncodeError> {
        actions.iter().try_for_each(|action| self.action(action?, version))
    }

    /// Adds an action.
    pub(super) fn action(&mut self, action: Action<'_>, version: Version) -> Result<(), EncodeError> {
        let action = standard(action);
        if let Some(fields) = meaning::fields(&action) {
            self.set(fields);
            return Ok(());
        }

        match action {
            Action::SetQueue(set) => self.queue = Queue::Selected(set.queue_id.0),
            Action::Experimenter(Extended::Nicira(NiciraAction::PopQueue(_))) => self.queue = Queue::First,
            Action::Enqueue(enqueue) => {
                let after = match self.queue {
                    Queue::Inherited => Queue::First,
                    queue => queue,
                };
                self.queue = Queue::Selected(enqueue.queue_id.0);
                self.other(&meaning::own(&meaning::output(enqueue.port), version)?);
                self.queue = after;
            }
            other => self.other(&meaning::own(&other, version)?),
        }

        Ok(())
    }

    /// Adds field settings.
    pub(super) fn set(&mut self, fields: Vec<Field>) {
        for field in fields {
            if self.run.iter().any(|other| other.overlaps(&field)) {
                self.end_run();
            }

            let replaces = self.replaces;
            let earlier = self.run.iter_mut().find(|other| other.is_of(&field));
            match earlier.map(|earlier| earlier.takes(&field, replaces)) {
                Some(true) => {}
                Some(false) => {
                    self.end_run();
                    self.run.push(field);
                }
                None => self.run.push(field),
            }
        }
    }

    /// Adds the bytes of an action that sets no fields.
    pub(super) fn other(&mut self, bytes: &[u8]) {
        self.end_run();
        self.tell_queue();
        self.put(part::ACTION, bytes);
    }

    /// Ends a run of settings and writes them sorted, because their order has no effect.
    fn end_run(&mut self) {
        let mut run = core::mem::take(&mut self.run);
        run.sort();
        for field in run {
            let mut bytes = Vec::new();
            field.write(&mut bytes);
            self.put(part::FIELD, &bytes);
        }
    }

    fn tell_queue(&mut self) {
        if self.queue == self.told {
            return;
        }
        self.told = self.queue;
        match self.queue {
            Queue::Selected(queue) => self.put(part::QUEUE, &queue.to_be_bytes()),
            Queue::First | Queue::Inherited => self.put(part::QUEUE, &[]),
        }
    }

    /// Writes a part with its tag and its length, so parts are self-delimiting.
    fn put(&mut self, part: u8, bytes: &[u8]) {
        self.bytes.push(part);
        self.bytes.extend((bytes.len() as u32).to_be_bytes());
        self.bytes.extend(bytes);
    }
}
