//! Observation: status, execution history, and what tests look at.

pub(crate) mod dead_letters;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod outbox_probe;
pub(crate) mod status;
