//! A delivery: a run of messages for one set of cells, on its way into a bee.

use crate::cell::CellSet;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::offices::Office;
use crate::hive::bee::body::Body;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::dispatch::sender::queue::Back;
use crate::hive::dispatch::turn::Turn;
use crate::hive::message::batch::AnyBatch;
use std::sync::Arc;

/// A function that runs a delivery in a bee, instantiated for each message type.
pub(crate) type RunDelivery = fn(&Arc<Bee>, &mut Body, Delivery, &mut Turn);

/// A run of messages for one set of cells, on its way into a bee.
pub(crate) struct Delivery {
    /// Runs the messages of `batch`. This function knows their type.
    pub(crate) run: RunDelivery,
    /// The batch that contains the messages.
    pub(crate) batch: Arc<dyn AnyBatch>,
    /// The log to which the sender belongs.
    pub(crate) office: Office,
    /// The queue of the sender, while the delivery is in the mailbox of a bee that the hive may lose. If it loses the bee, the
    /// messages go back there.
    pub(crate) back: Option<Back>,
    /// The work from outside that caused these messages. Its credits return when the last reference to it
    /// is dropped.
    pub(crate) cause: Option<Arc<Cause>>,
    /// Index of the first message in the batch, and the number of messages.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Position of the app in the answer chain; `None` if the app is not in it.
    pub(crate) position: Option<u16>,
    /// The cells to which all messages of this run map.
    pub(crate) cells: CellSet,
}
