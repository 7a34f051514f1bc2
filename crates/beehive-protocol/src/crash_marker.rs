//! The marker that a hive leaves while it runs, for the next start after a crash.

use crate::{CellId, Fact};
use serde::{Deserialize, Serialize};

/// A message that may end the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Suspect {
    /// The message, or the sweep.
    pub fact: Fact,
    /// Of a sweep: the cell whose turn it is.
    pub cell: Option<CellId>,
}

/// What a life of a hive leaves for the next one, should it end without a word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// A message that is being run. Only messages that a life left unfinished which did not end well are noted.
    pub running: Option<Suspect>,
    /// Messages that ended the process when they were run, and are not run again.
    pub set_aside: Vec<Suspect>,
}
