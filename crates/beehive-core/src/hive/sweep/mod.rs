//! Sweeps: messages and timer ticks that visit every cell of a dictionary.
//!
//! Input: messages whose handler runs for each cell of a dictionary, timers that are due, and unfinished
//! sweeps from a log. Output: visits, one per bee and step, in the mailboxes of the bees; and, with a
//! journal, the records that move a sweep's cursor.
//!
//! Locks: the progress of a logged sweep has a mutex. A thread may take it while holding the lock of the
//! sender's queue. No thread holds it while committing a record or sending a visit. The windows of a logged sweep have another
//! mutex, which is locked after that of the progress.
//!
//! Shutdown: once the hive is stopping, timers start no further sweeps or parts of sweeps. The task that
//! fires timers ends when the hive is over. If a logged sweep is not complete by then, the next incarnation
//! resumes it.

pub(crate) mod logged_sweep;
mod open_visits;
mod opening;
mod progress;
mod tick_visits;
pub(crate) mod ticks;
pub(crate) mod unlogged_sweep;
mod windows;
