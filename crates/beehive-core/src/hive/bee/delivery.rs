//! A delivery: a run of messages to one set of cells, on its way into a bee.

use crate::app::App;
use crate::cell::CellSet;
use crate::hive::admission::credits::Cause;
use crate::hive::bee::body::Body;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::dispatch::turn::Turn;
use crate::hive::message::batch::AnyBatch;
use std::sync::Arc;

/// What runs a delivery in a bee.
pub(crate) type RunDelivery<A> = fn(&Arc<Bee<A>>, &mut Body<A>, Delivery<A>, &mut Turn);

/// A run of messages to one set of cells, on its way into a bee.
pub(crate) struct Delivery<A: App> {
    /// Runs the messages; knows their type.
    pub(crate) run: RunDelivery<A>,
    pub(crate) batch: Arc<dyn AnyBatch>,
    /// Held until the messages, and all that they cause, are done.
    pub(crate) cause: Option<Arc<Cause>>,
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Position in the chain of those that can answer.
    pub(crate) position: Option<u16>,
    /// What the messages map to: the same for all of the run.
    pub(crate) cells: CellSet,
}
