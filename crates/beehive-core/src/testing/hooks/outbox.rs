//! `Outbox`: a probe that keeps the messages sent by apps, and the failures, so that a test can inspect them.

use crate::hive::dispatch::probe::{Encodable, Probe};
use crate::hive::message::batch::{Address, Batch, Messages, Shared, batch_of};
use crate::hive::message::dead_letters::DeadLetter;
use crate::message::Message;
use crate::state::EncodedCells;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;

/// A message sent by an app.
#[derive(Clone)]
pub(crate) struct Sent {
    batch: Arc<dyn Messages>,
    index: u32,
}

impl Sent {
    /// Returns whether the message is an `M`.
    pub(crate) fn is<M: Message>(&self) -> bool {
        self.batch.as_any().is::<Batch<M>>()
    }

    /// Returns the message if it is an `M`.
    pub(crate) fn as_message<M: Message>(&self) -> Option<Shared<M>> {
        let batch = batch_of::<M>(self.batch.clone())?;
        Shared::of(&batch, self.index)
    }

    /// Returns the name of the message, its encoding, and its name and content as text.
    pub(crate) fn describe(&self) -> (&'static str, Vec<u8>, String) {
        let name = self.batch.message_name();
        let encoded = self.batch.payload(self.index).map_or_else(Vec::new, |payload| payload.to_vec());
        let words = self.batch.words(self.index as usize, usize::MAX);
        (name, encoded, format!("{name} {words}"))
    }
}

/// The messages and failures of a hive that the test has not taken yet.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The messages that its apps sent, in the order in which they took effect.
    sent: Mutex<Vec<Sent>>,
    failures: Mutex<Failures>,
    /// The cost of the comparisons so far.
    compared: Mutex<Compared>,
}

/// The budget of the comparisons, in rows per transaction.
const ROWS_PER_TRANSACTION: u64 = 32;

/// The cost of comparing the values of a bee before and after a transaction. A comparison encodes all rows of the bee, so
/// only some transactions of large bees are compared.
#[derive(Default)]
struct Compared {
    transactions: u64,
    rows: u64,
}

/// The failed messages. The hive itself keeps only a limited number of the newest dead letters.
#[derive(Default)]
pub(crate) struct Failures {
    /// The first message that failed.
    pub(crate) first: Option<DeadLetter>,
    /// Number of messages that failed.
    pub(crate) count: u64,
}

impl Outbox {
    /// Returns all messages and removes them.
    pub(crate) fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.sent.lock())
    }

    /// Returns the failures and begins a new count.
    pub(crate) fn take_failures(&self) -> Failures {
        std::mem::take(&mut *self.failures.lock())
    }
}

/// Returns the dictionary of the first cell in which two states differ.
fn difference(one: &EncodedCells, other: &EncodedCells) -> Option<u32> {
    let (mut ones, mut others) = (one.images(), other.images());
    loop {
        match (ones.next(), others.next()) {
            (None, None) => return None,
            (Some(one), Some(other)) if one == other => {}
            (Some(cell), _) | (None, Some(cell)) => return Some(cell.dict),
        }
    }
}

impl Probe for Outbox {
    fn compares(&self) -> bool {
        true
    }

    fn beginning(&self, state: &mut dyn Encodable) -> Option<EncodedCells> {
        let mut compared = self.compared.lock();
        compared.transactions += 1;
        if compared.rows > compared.transactions * ROWS_PER_TRANSACTION {
            return None;
        }
        let cells = state.cells()?;
        compared.rows += cells.row_count() as u64;
        Some(cells)
    }

    fn hidden_change(&self, mut before: EncodedCells, state: &mut dyn Encodable) -> Option<&'static str> {
        let changes = state.recorded();
        changes.iter().for_each(|change| before.apply(change));
        let after = state.cells()?;
        difference(&before, &after).map(|dict| state.name(dict))
    }

    fn emitted(&self, batch: Arc<dyn Messages>, range: Range<u32>) {
        // Do not keep messages from outside. The test knows what it emitted, and a sender waiting for answers waits
        // until their batch is dropped.
        if !matches!(batch.source().sender, Address::App(_)) {
            return;
        }
        self.sent.lock().extend(range.map(|index| Sent { batch: batch.clone(), index }))
    }

    fn dead_letter(&self, letter: &DeadLetter) {
        let mut failures = self.failures.lock();
        failures.count += 1;
        failures.first.get_or_insert_with(|| letter.clone());
    }
}
