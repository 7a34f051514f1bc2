//! Messages in flight: batches and their origin, the inboxes of IO bees, dead letters, and the data of
//! reports.
//!
//! Input: messages that tasks and handlers emit, answers, and failures. Output: batches for delivery, mail
//! for IO bees, and dead letters and status data for people.
//!
//! Locks: each inbox and the dead letters have a mutex, the tables of IO bees have one lock each. None of
//! them is held while another is taken; an inbox releases credits and wakes its reader after it has
//! unlocked.
//!
//! Shutdown: nothing special. Unread mail is dropped together with its inbox.

pub(crate) mod batch;
pub(crate) mod counters;
pub(crate) mod dead_letters;
pub(crate) mod inbox;
pub(crate) mod render;
pub(crate) mod reports;
pub(crate) mod trace;
