//! App settings, as kept in a log.

use serde::{Deserialize, Serialize};

/// One version of an app's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedSettings {
    /// The version, counted from 1. It is 0 if the log has no settings of this app.
    pub version: u32,
    /// The app's configuration table, as TOML.
    pub table: String,
}
