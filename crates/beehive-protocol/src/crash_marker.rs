//! The marker that a running hive has in its log, by which its next incarnation finds the message that crashed the
//! process.

use crate::{CellId, MessageId};
use serde::{Deserialize, Serialize};

/// A message that may be a poison message: it may have crashed the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Suspect {
    /// The message, or the sweep.
    pub id: MessageId,
    /// The cell visited by a sweep. `None` if the message is not a sweep.
    pub cell: Option<CellId>,
}

/// The data that a running hive leaves in a log for its next incarnation. A hive that stops cleanly removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashMarker {
    /// The messages that are being handled, or are next. Not empty only while a hive that started after a crash is handling
    /// messages left unfinished by the crash.
    pub running: Vec<Suspect>,
    /// Messages that the markers named together when a process ended, and that no hive has finished since. One of them may
    /// have crashed the process, so each of them runs alone.
    pub suspected: Vec<Suspect>,
    /// Messages that the markers named alone when a process ended, and that no hive has finished since. The process may have
    /// been killed from outside, so each gets one more chance.
    pub accused: Vec<Suspect>,
    /// Messages that the markers named alone when two processes ended. They are not handled again.
    pub set_aside: Vec<Suspect>,
    /// Number of the marker. It rises whenever a message begins or ends to run alone. A hive has a marker in each of its logs,
    /// and a log may commit its marker late or never. The markers with the highest number therefore say what was running when
    /// the process ended.
    pub number: u64,
}
