//! Dispatch: the work of one worker during a turn. It delivers emitted messages to the mailboxes of the bees
//! that own their cells.
//!
//! Input: messages emitted by transactions and IO bees (`outputs`), and scheduled bees. Output: deliveries
//! and other effects (`effects`), which take place immediately or when their record is committed; blocked
//! messages and deferred work, which wait in their sender's queue (`sender`); and scheduled bees, which go to
//! the runners and the overflow pools (`workers`, `overflow_pool`). `types` lists the message types and their
//! handlers.
//!
//! Locks: each slot, the runners' queue, the overflow pools, each sender's queue and each deferred queue
//! have their own lock. No thread holds two of the first three at once. A thread that delivers messages
//! holds the lock of the sender's queue, so mailboxes are locked after sender's queues.
//!
//! Shutdown: once the hive is over, the `resolve` tasks and the deferred queues drop the messages they hold.
//! The thread running a bee drops the bee's queued deliveries and returns the bee's body to its mailbox.

#[cfg(feature = "testing")]
pub(crate) mod app_access;
pub(crate) mod effects;
pub(crate) mod inner;
pub(crate) mod outputs;
pub(crate) mod overflow_pool;
pub(crate) mod probe;
pub(crate) mod resumed;
pub(crate) mod sender;
pub(crate) mod turn;
pub(crate) mod types;
pub(in crate::hive) mod upcoming;
pub(crate) mod workers;
