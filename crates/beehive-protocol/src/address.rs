//! Receivers of messages.

use crate::{AppId, HiveId};
use serde::{Deserialize, Serialize};

/// A receiver of messages: an IO bee or an app. It is plain data, which can be stored in a cell and sent in a
/// message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Address {
    /// An IO bee of a hive, by its number there.
    Io(HiveId, u64),
    /// An app, by its position among the apps. The app's map decides which of its cells the message is for.
    App(AppId),
    /// A client outside the hive that waits for an answer. It gets the answer, but no other messages can be
    /// sent to it.
    Outside,
}
