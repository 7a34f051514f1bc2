//! Receivers of messages.

use crate::{AppId, HiveId};
use serde::{Deserialize, Serialize};

/// A receiver of messages, such as an IO bee or an app. It is plain data, which a handler can store in a cell or send in
/// a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Address {
    /// An IO bee of a hive, by its number on that hive.
    Io(HiveId, u64),
    /// An app, by its position among the apps. The app's map decides which of its cells receive the message.
    App(AppId),
    /// A client outside the hive that waits for an answer. It gets the answer, but no other message can be sent to it.
    Outside,
}
