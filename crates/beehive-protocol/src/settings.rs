//! Settings of apps as a log keeps them.

use serde::{Deserialize, Serialize};

/// Settings of an app as a log keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedSettings {
    /// Counts from 1.
    pub version: u32,
    /// The table, as TOML.
    pub table: String,
}
