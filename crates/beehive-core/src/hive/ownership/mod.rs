//! Ownership: the queen of each app, who asks the registry which bee owns which cell and executes its
//! decisions.
//!
//! Input: sets of cells without a single owner, from tasks that route. Output: proposals to the registry,
//! changes of the routing table, and new, merged or retired bees.
//!
//! Locks: the queen's lock serializes the decisions. Under it, mailboxes and then routing-table shards are
//! locked. It is not held while the queen awaits the registry or the bodies of bees that are to be merged.
//!
//! Shutdown: once the hive is over, retries end and no new merge begins. Callers that wait for a decision get
//! `Unavailable` when the task that would answer them is gone.

mod moves;
pub(crate) mod queen;
