//! The marker that a running hive leaves so that its next start can find the message that crashed the process.

use crate::{CellId, MessageId};
use serde::{Deserialize, Serialize};

/// A message that may be a poison message: it may have crashed the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Suspect {
    /// The message, or the sweep.
    pub id: MessageId,
    /// The cell that a sweep visits. `None` if the message is not a sweep.
    pub cell: Option<CellId>,
}

/// The data that a running hive leaves for its next start. A hive that stops cleanly removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashMarker {
    /// The message that is being handled. It is set only while a hive that started after a crash handles the messages
    /// that the crash left unfinished.
    pub running: Option<Suspect>,
    /// Poison messages in quarantine. Each of them has crashed the process, and is not handled again.
    pub set_aside: Vec<Suspect>,
}
