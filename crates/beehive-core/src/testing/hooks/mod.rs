//! The hooks that tests attach to a hive: probes that record its execution, and access to its bees.

pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod outbox;
