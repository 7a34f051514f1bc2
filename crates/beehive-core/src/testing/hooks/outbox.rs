//! What apps sent, kept for a test to look at.

use crate::hive::Address;
use crate::hive::message::batch::{Batch, Shared};
use crate::message::Message;
use crate::state::image::{encode, words};
use parking_lot::Mutex;
use std::any::{Any, TypeId};
use std::ops::Range;
use std::sync::Arc;

/// A message whose type is not known here.
pub(crate) trait AnyMessage: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn name(&self) -> &'static str;
    fn bytes(&self) -> Vec<u8>;
    fn words(&self) -> String;
}

impl<M: Message> AnyMessage for Shared<M> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &'static str {
        M::NAME
    }

    fn bytes(&self) -> Vec<u8> {
        encode(&**self)
    }

    fn words(&self) -> String {
        format!("{} {}", M::NAME, words(&**self))
    }
}

/// A message on its way from an app.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) kind: TypeId,
    pub(crate) message: Arc<dyn AnyMessage>,
}

/// What the apps of a hive sent, in the order in which it left them.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<Sent>>);

impl Recorder {
    #[cold]
    pub(crate) fn note<M: Message>(&self, batch: &Arc<Batch<M>>, range: Range<u32>) {
        // what comes in from outside is known to whoever brought it in, and holds on to those who wait for an answer
        if !matches!(batch.source.sender, Address::App(_)) {
            return;
        }
        let sent = range
            .filter_map(|index| Shared::of(batch, index))
            .map(|message| Sent { kind: TypeId::of::<M>(), message: Arc::new(message) });
        self.0.lock().extend(sent)
    }

    /// Takes everything.
    pub(crate) fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.0.lock())
    }
}
