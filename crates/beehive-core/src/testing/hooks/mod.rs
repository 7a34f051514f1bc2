//! Hooks that tests attach to a hive: probes that record its execution, and operations on its bees.

pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod outbox;
pub(crate) mod tracer;
