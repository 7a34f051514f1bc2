//! Running, the owner's side: transactions, and the log records made of them.
//!
//! Input: a bee's body and a delivery, or a stateless handler and its messages. Output: changes of state, and
//! effects, which take place at once or are held until the record of the run is committed; with a journal,
//! the record itself. The journal reports committed and refused records back (`log_events`).
//!
//! Locks: none of its own. The thread that runs a bee has its body, and no other thread can touch it.
//!
//! Shutdown: when the hive is over, no further transaction begins.

pub(crate) mod delivery;
pub(crate) mod dropped;
pub(crate) mod journaled;
pub(crate) mod log_events;
pub(crate) mod postpone;
pub(crate) mod rerun;
pub(crate) mod transaction;
