//! Admission: how much work from outside is in flight, and which messages from outside may still be resent.
//!
//! Input: batches, requests and timers on their way to the bees. Output: a `Cause`, which holds the credits
//! of a batch until everything that the batch caused is done, and, with a journal, the batch's numbers on the
//! lane of its sender. The lanes' floors go into log records, and retired lanes are reported to the log.
//!
//! Locks: credits and work in flight are atomic counters. Each lane has a mutex, the table of known lanes
//! another one, the list of retired lanes a third; of these, no two are held at once. The timer wheel has a
//! mutex. Wake-ups are sent after these locks are released.
//!
//! Shutdown: `InFlight::done` completes when no cause is left. The timers that have not fired are dropped,
//! and the counts of what was not finished are returned as `Stopped`.

pub(crate) mod bee_lanes;
pub(crate) mod credits;
pub(crate) mod deferred_wakes;
pub(crate) mod lifecycle;
pub(crate) mod outside_lanes;
pub(crate) mod timer_wheel;
