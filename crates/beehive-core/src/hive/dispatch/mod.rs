//! Dispatch: what one worker does during a turn, from emitted messages to the mailboxes of their owners.
//!
//! Input: the messages that transactions and IO bees emit (`outputs`), and scheduled bees. Output: deliveries
//! and other effects (`effects`), at once or when their record is committed; blocked messages, which wait in
//! their sender's queue (`sender_queue`); deferred work (`deferred`); scheduled bees for the runners and the
//! overflow pools (`workers`, `overflow_pool`).
//!
//! Locks: each slot, the runners' queue, the overflow pools, each sender's queue and each deferred queue
//! have a lock of their own. No two of the first three are held at once. Messages are delivered under the
//! lock of a sender's queue, so mailboxes are locked after it.
//!
//! Shutdown: when the hive is over, the `resolve` tasks and the deferred queues drop what they hold, and the
//! thread that runs a bee drops the bee's queued deliveries and returns its body to the mailbox.

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
