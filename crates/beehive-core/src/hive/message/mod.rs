//! Messages in flight: batches, their origin, and what is kept or printed of them.

pub(crate) mod batch;
pub(crate) mod counters;
pub(crate) mod dead_letters;
pub(crate) mod inbox;
pub(crate) mod render;
pub(crate) mod reports;
pub(crate) mod trace;
