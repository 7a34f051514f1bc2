//! A bee: its mailbox, its body, its uncommitted runs, and the tables that find a bee by cell or by id.
//!
//! Input: deliveries, which senders push into the mailbox, and requests of the queen to freeze a bee. Output:
//! the messages that its handlers emit, which the turn that runs the bee delivers before it gives the body
//! back.
//!
//! ```text
//!  push ──► mailbox: queue ──┐            ┌──► the body goes back into the mailbox; if deliveries are left,
//!                     body ──┴──► a turn ─┤    the bee is scheduled again
//!                                         └──► the queen (freeze), which thaws the bee or fuses it with another
//! ```
//!
//! Locks: a mailbox is a mutex that is never held while a handler runs; no two mailboxes are locked at
//! once. The lock order is queen, mailbox, routing-table shard. The list of idle bees has a lock of its
//! own, under which no other lock is taken.
//!
//! Shutdown: once the hive is over, the turn that holds a body drops the bee's queued deliveries, which
//! returns their credits, and drops the pending requests to freeze the bee, so that no merge waits for a
//! body that never comes.

pub(crate) mod app;
pub(crate) mod bee_table;
pub(crate) mod body;
pub(crate) mod delivery;
pub(crate) mod lifecycle;
pub(crate) mod mailbox;
pub(crate) mod pending;
pub(crate) mod routing_table;
pub(crate) mod settings;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod traffic;
