//! A sender's queue. Messages wait there while their owner is unknown or has no room; so does work that must happen in
//! order, or on another task.

pub(crate) mod blocked;
pub(crate) mod deferred;
pub(crate) mod ordered_release;
pub(crate) mod queue;
