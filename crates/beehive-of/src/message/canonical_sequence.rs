//! Actions in order, in one form: what is set in between in no order, and the queue only where it counts.

use alloc::vec::Vec;

use super::action::{Action, Actions};
use super::canonical_action::{self as meaning, standard};
use super::canonical_field::Field;
use super::extension::{Extended, NiciraAction};
use crate::encode::EncodeError;
use crate::version::Version;

/// The queue that outputs take.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Queue {
    /// That which the packet came here with.
    #[default]
    Inherited,
    /// That which the packet had first.
    First,
    /// This one.
    Selected(u32),
}

/// How a part of the form is to be read, so that none of one kind is one of another.
mod part {
    pub(super) const ACTION: u8 = 0;
    pub(super) const FIELD: u8 = 1;
    pub(super) const QUEUE: u8 = 2;
}

/// The form of some actions, as it is made.
#[derive(Default)]
pub(super) struct Sequence {
    bytes: Vec<u8>,
    /// What is set since the last other action: each field once.
    run: Vec<Field>,
    /// The queue now, and the one that the form has told.
    queue: Queue,
    told: Queue,
    /// Whether a later setting takes the place of an earlier one of the same field, bits and all.
    replaces: bool,
}

impl Sequence {
    /// For actions that are done together: of those that set a field, the last.
    pub(super) fn of_set() -> Self {
        Self { replaces: true, ..Self::default() }
    }

    /// The form.
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

    /// Adds fields that are set.
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

    /// Adds an action that has no other form.
    pub(super) fn other(&mut self, bytes: &[u8]) {
        self.end_run();
        self.tell_queue();
        self.put(part::ACTION, bytes);
    }

    /// What is set one after the other is set, in whatever order.
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

    /// Each with its length and how it is written: what one means is nothing of what follows.
    fn put(&mut self, part: u8, bytes: &[u8]) {
        self.bytes.push(part);
        self.bytes.extend((bytes.len() as u32).to_be_bytes());
        self.bytes.extend(bytes);
    }
}
