//! Admission: it bounds how much work from outside is in flight, and tracks which messages from outside may
//! still be resent.
//!
//! Input: batches, requests and timers on their way to the bees. Output: a `Cause`, which holds the credits
//! of a batch until everything that the batch caused is done, and, with a journal, the batch's sequence
//! numbers on its sender's lane. The floors of the lanes go into log records, and the hive records in the log
//! which lanes have retired.
//!
//! Locks: credits and work in flight are atomic counters. Each lane, the table of known lanes and the list
//! of retired lanes have their own mutex; no thread holds two of these at once. The timer wheel has a mutex
//! too. Wake-ups are sent after these locks are released.
//!
//! Shutdown: `InFlight::done` completes when no cause is left. Timers that have not fired are dropped.
//! `Stopped` reports how much work was left unfinished.

pub(crate) mod bee_lanes;
pub(crate) mod credits;
pub(crate) mod deferred_wakes;
pub(crate) mod entrances;
pub(crate) mod foreign_lanes;
mod lane_window;
pub(crate) mod lifecycle;
pub(crate) mod offices;
pub(crate) mod outside_lanes;
pub(crate) mod timer_wheel;
