//! Settings of apps as a log keeps them.

use serde::{Deserialize, Serialize};

/// One version of an app's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedSettings {
    /// The version; counts from 1. Zero if the log has no settings of this app.
    pub version: u32,
    /// The app's table of the configuration, as TOML.
    pub table: String,
}
