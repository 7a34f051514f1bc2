//! Messages in flight: batches and their origin, the inboxes of IO bees, dead letters, and the data of
//! status reports.
//!
//! Input: messages that tasks and handlers emit, answers, and failures. Output: batches for delivery, mail
//! for IO bees, and, for people, dead letters and status data.
//!
//! Locks: each inbox, the list of dead letters and each table of IO bees has its own lock. No thread takes
//! one of them while it holds another. A thread releases an inbox's credits and wakes its reader only after
//! it has unlocked the inbox.
//!
//! Shutdown needs no special steps. Unread mail is dropped together with its inbox.

pub(crate) mod batch;
pub(crate) mod counters;
pub(crate) mod dead_letters;
pub(crate) mod inbox;
pub(crate) mod render;
pub(crate) mod reports;
pub(crate) mod trace;
