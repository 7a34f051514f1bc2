//! Sweeps: messages and timer ticks that visit every cell of a dictionary.
//!
//! Input: messages whose handler runs for each cell of a dictionary, timers that are due, and unfinished
//! sweeps from a log. Output: one visit per bee and step, which is pushed into the mailbox of the bee; with a
//! journal, the records that move a sweep's cursor.
//!
//! Locks: the progress of a logged sweep has a mutex, which may be taken under the lock of the sender's
//! queue. It is not held while a record is committed or a visit is sent.
//!
//! Shutdown: once the hive is stopping, timers start no further sweep and no further part of one, and a
//! logged sweep no longer waits for the time at which a part is due. The task that fires timers ends when the
//! hive is over. A logged sweep that is not complete by then is resumed by the next incarnation.

pub(crate) mod logged_sweep;
pub(crate) mod ticks;
pub(crate) mod unlogged_sweep;
