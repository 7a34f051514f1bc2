//! What waits at a sender: messages whose owner is not known or has no room, and work that must happen in order
//! or on another task.

pub(crate) mod blocked;
pub(crate) mod deferred;
pub(crate) mod ordered_release;
pub(crate) mod queue;
