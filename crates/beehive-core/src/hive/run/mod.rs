//! Running, on the owner's side: transactions, and the log records made from them.
//!
//! Input: a bee's body and a delivery, or a stateless handler and its messages. Output: changes of state;
//! effects, which take place immediately or are held until the run's record is committed; and, with a
//! journal, the record itself. The journal later reports that the record was committed or refused
//! (`log_events`).
//!
//! Locks: this room has none of its own. The thread running a bee holds the bee's body, so no other thread
//! can touch it.
//!
//! Shutdown: once the hive is over, no further transaction begins.

pub(crate) mod delivery;
pub(crate) mod dropped;
pub(crate) mod journaled;
pub(crate) mod log_events;
pub(crate) mod postpone;
pub(crate) mod rerun;
pub(crate) mod results;
pub(crate) mod transaction;
pub(crate) mod unrecorded;
