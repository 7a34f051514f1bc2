//! Ownership: each app's queen, which asks the registry which bee owns which cell and executes the registry's
//! decisions. Also merges bees (`merging`), and moves them between an app's logs (`moves`), and in a cluster between hives: the
//! reconciler compares the registry with the outlines of the logs, and takes the steps in `leaving`, `copies`, `examine` and
//! `hosting`; a hive that no longer leads a log leaves it in `unhosting`; `foreign` looks after the lanes of other hives.
//!
//! Input: sets of cells without a single owner, from routing tasks. Output: proposals to the registry, changes to the
//! routing table, and new, merged or retired bees.
//!
//! Locks: the queen's lock serializes the execution of decisions. Mailboxes, and then routing-table shards, are locked
//! under it. It is not held while the queen is waiting for the registry or for the bodies of bees to be merged.
//!
//! Shutdown: once the hive is over, retries end and no new merge begins. Callers waiting for a decision get
//! `Unavailable` when the task that would answer them is dropped.

mod copies;
mod examine;
pub(crate) mod foreign;
mod hosting;
mod leaving;
mod merging;
mod moves;
pub(crate) mod queen;
pub(in crate::hive) mod reconciler;
mod unhosting;
