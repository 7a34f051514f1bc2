//! Routing on the sender's side: from the derived map of a message to the mailbox of the bee that owns its
//! cells.
//!
//! Input: batches from handlers, IO bees, timers and the log, with a `RouteContext` that determines where
//! effects go. Output: deliveries in the mailboxes of bees, or in the queue of the sender if the cells have
//! no single owner yet; runs of stateless handlers; proposals to claim cells (`ownership`).
//!
//! Locks: none of its own. No lock is held while a message is mapped or a stateless handler runs.
//!
//! Shutdown: nothing special. Deliveries that are blocked are dropped together with the sender's queue once
//! the hive is over.

pub(crate) mod delivery;
pub(crate) mod receiver;
pub(crate) mod recovery;
pub(crate) mod routed;
