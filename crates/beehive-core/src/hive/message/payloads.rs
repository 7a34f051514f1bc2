//! Payloads of a batch that several apps get: each message is encoded once for all of them.

use crate::hive::consensus::journal::Payload;
use crate::hive::message::batch::Messages;
use std::sync::Arc;

/// The payloads of the batch that is being routed, encoded on demand. The default shares nothing.
#[derive(Default)]
pub(crate) struct Payloads {
    /// The batch. It is kept alive so that no other batch can get the same address.
    batch: Option<Arc<dyn Messages>>,
    /// The payloads, by position in the batch.
    encoded: Vec<Option<Payload>>,
}

impl Payloads {
    /// Shares the payloads of a batch.
    pub(crate) fn shared(batch: &Arc<impl Messages>) -> Payloads {
        Payloads { batch: Some(batch.clone()), encoded: Vec::new() }
    }

    /// Returns the payload of message `index`, or `None` if the batch has no such message. Panics if the message cannot
    /// be encoded.
    pub(crate) fn of(&mut self, batch: &dyn Messages, index: u32) -> Option<Payload> {
        let is_shared = self.batch.as_deref().is_some_and(|shared| std::ptr::addr_eq(shared, batch));
        if !is_shared {
            return batch.payload(index);
        }

        let index_in_batch = index as usize;
        if let Some(Some(payload)) = self.encoded.get(index_in_batch) {
            return Some(payload.clone());
        }

        let payload = batch.payload(index)?;
        if self.encoded.len() <= index_in_batch {
            self.encoded.resize(index_in_batch + 1, None)
        }
        if let Some(slot) = self.encoded.get_mut(index_in_batch) {
            *slot = Some(payload.clone())
        }
        Some(payload)
    }
}
