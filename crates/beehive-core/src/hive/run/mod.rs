//! Running, the owner's side: transactions, and the commit records made of them.

pub(crate) mod delivery;
pub(crate) mod journaled;
pub(crate) mod log_events;
pub(crate) mod postpone;
pub(crate) mod rerun;
pub(crate) mod transaction;
