//! Dispatch: what one worker does with messages, from their emission to the mailboxes of their owners.

#[cfg(feature = "testing")]
pub(crate) mod app_access;
pub(crate) mod blocked;
pub(crate) mod deferred;
pub(crate) mod effects;
pub(crate) mod handler;
pub(crate) mod inner;
pub(crate) mod message_types;
pub(crate) mod ordered_release;
pub(crate) mod outputs;
pub(crate) mod overflow_pool;
pub(crate) mod probe;
pub(crate) mod sender_queue;
pub(crate) mod turn;
pub(crate) mod workers;
