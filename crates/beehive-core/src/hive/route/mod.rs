//! Routing on the sender's side: from the derived map of a message to the mailbox of the bee that owns its
//! cells.
//!
//! Input: batches from handlers, IO bees, timers and the log, with a `RouteContext` that determines where
//! effects go. Output: deliveries, which go into bees' mailboxes, or into the sender's queue if the cells do
//! not yet have a single owner; runs of stateless handlers; and proposals to claim cells (`ownership`).
//!
//! Locks: this room has none of its own. None of the hive's locks is held while a map is running. While a
//! stateless handler is running, only the quarantine's lock may be held.
//!
//! Shutdown needs no special steps. Once the hive is over, blocked deliveries are dropped with the sender's
//! queue.

pub(crate) mod arrivals;
pub(crate) mod delivery;
pub(crate) mod journey;
pub(crate) mod receiver;
pub(crate) mod recovery;
pub(crate) mod routed;
