//! Messages in flight: batches and their origin, the inboxes of IO bees, dead letters, and the data of
//! status reports.
//!
//! Input: messages emitted by tasks and handlers, answers, and failures. Output: batches for delivery, mail
//! for IO bees, and, for people, dead letters and status data.
//!
//! Locks: each inbox, the list of dead letters and each table of IO bees has its own lock. No thread takes
//! one of them while holding another. A thread unlocks an inbox before it releases the inbox's credits and
//! wakes the reader.
//!
//! Shutdown needs no special steps. Unread mail is dropped with its inbox.

pub(crate) mod arrival;
pub(crate) mod batch;
pub(crate) mod counters;
pub(crate) mod dead_letters;
pub(crate) mod inbox;
pub(crate) mod payloads;
pub(crate) mod remote_mail;
pub(crate) mod render;
pub(crate) mod reports;
pub(crate) mod trace;
