//! Receivers of messages.

use crate::HiveId;
use serde::{Deserialize, Serialize};

/// Something that can be sent to: an IO bee, or an app. A value like any other: store it, send it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Address {
    /// An IO bee of a hive.
    Io(HiveId, u64),
    /// An app, by its number on the hive; which cells, its map says.
    App(u16),
    /// Somebody outside who waits for an answer, and cannot be sent to otherwise.
    Outside,
}
