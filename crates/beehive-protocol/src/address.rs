//! Receivers of messages.

use crate::{AppId, HiveId};
use serde::{Deserialize, Serialize};

/// A receiver of messages: an IO bee, or an app. A plain value: store it, send it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Address {
    /// An IO bee of a hive, by its number there.
    Io(HiveId, u64),
    /// An app, by its position among the apps. The app's map decides which of its cells the message is for.
    App(AppId),
    /// A client outside that waits for an answer. It can be answered and not be sent to.
    Outside,
}
