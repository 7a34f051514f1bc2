//! Ownership: the queen of each app, which asks the registry which bee owns which cell, and executes the registry's
//! decisions. Also moves bees between the logs of an app.
//!
//! Input: sets of cells without a single owner, from tasks that route. Output: proposals to the registry,
//! changes of the routing table, and new, merged or retired bees.
//!
//! Locks: the queen's lock serializes the execution of decisions. Mailboxes and then routing-table shards are locked
//! under it. It is not held while the queen awaits the registry or the bodies of bees that are to be merged.
//!
//! Shutdown: once the hive is over, retries end and no new merge begins. Callers that wait for a decision get
//! `Unavailable` when the task that would answer them is dropped.

mod moves;
pub(crate) mod queen;
