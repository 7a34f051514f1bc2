//! A bee: its mailbox, its body and its uncommitted runs; and the tables in which a bee is found by cell or
//! by id.
//!
//! Input: deliveries, which senders push into the mailbox, and the queen's requests to freeze a bee. Output: the
//! messages emitted by the bee's handlers. The turn that runs the bee delivers them before it gives the body back.
//!
//! ```text
//!  push ──► mailbox: queue ──┐            ┌──► the body goes back into the mailbox; if deliveries are left,
//!                     body ──┴──► a turn ─┤    the bee is scheduled again
//!                                         └──► the queen (freeze), which thaws the bee or fuses it with another
//! ```
//!
//! Locks: a mailbox is behind a mutex. No thread holds that mutex while a handler is running, and no thread locks two
//! mailboxes at once. The lock order is queen, mailbox, routing-table shard. The list of idle bees has its own lock,
//! under which no thread takes another lock.
//!
//! Shutdown: once the hive is over, the turn that holds a body drops the bee's queued deliveries, which returns their
//! credits. It also drops the pending requests to freeze the bee, so that no merge waits for a body that never arrives.

pub(crate) mod app;
pub(crate) mod asleep;
pub(crate) mod bee_table;
pub(crate) mod body;
pub(crate) mod delivery;
pub(crate) mod elsewhere;
pub(crate) mod executed;
pub(crate) mod leaving;
pub(crate) mod lifecycle;
pub(crate) mod mailbox;
mod parked;
pub(crate) mod pending;
mod restored;
pub(crate) mod routing_table;
pub(crate) mod settings;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod traffic;
mod unhosting;
