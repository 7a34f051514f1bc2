//! The marker that a hive leaves while it runs, so that its next start finds the message that ended the process.

use crate::{CellId, MessageId};
use serde::{Deserialize, Serialize};

/// A message that may be a poison message: the process may have ended because of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Suspect {
    /// The message, or the sweep.
    pub id: MessageId,
    /// The cell that a sweep visits; `None` if the message is not a sweep.
    pub cell: Option<CellId>,
}

/// The data that a running hive leaves for its next start. A hive that stops cleanly removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashMarker {
    /// The message that is being handled. Set only while a hive that has started after a crash handles the
    /// unfinished messages.
    pub running: Option<Suspect>,
    /// Poison messages in quarantine: each has ended the process when it was handled, and is not handled again.
    pub set_aside: Vec<Suspect>,
}
