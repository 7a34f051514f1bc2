//! A delivery: a run of messages to one set of cells, on its way into a bee.

use crate::app::App;
use crate::cell::CellSet;
use crate::hive::admission::credits::Cause;
use crate::hive::bee::body::Body;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::dispatch::turn::Turn;
use crate::hive::message::batch::AnyBatch;
use std::sync::Arc;

/// The function that runs a delivery in a bee. It is instantiated for the message's type.
pub(crate) type RunDelivery<A> = fn(&Arc<Bee<A>>, &mut Body<A>, Delivery<A>, &mut Turn);

/// A run of messages to one set of cells, on its way into a bee.
pub(crate) struct Delivery<A: App> {
    /// Runs the messages of `batch`, whose type this function knows.
    pub(crate) run: RunDelivery<A>,
    /// The batch that contains the messages.
    pub(crate) batch: Arc<dyn AnyBatch>,
    /// The work from outside that caused these messages. Its credits return when the last holder drops it.
    pub(crate) cause: Option<Arc<Cause>>,
    /// Index of the first message in the batch, and the number of messages.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Position among the handlers that may answer the message; `None` if this handler cannot.
    pub(crate) position: Option<u16>,
    /// The cells that all messages of this run map to.
    pub(crate) cells: CellSet,
}
