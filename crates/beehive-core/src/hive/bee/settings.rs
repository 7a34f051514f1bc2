//! One app's settings on this hive, and their version.

use crate::app::{App, Handlers};
use crate::hive::bee::app::AppRuntime;
use crate::hive::consensus::journal::LoggedSettings;
use crate::hive::dispatch::inner::Change;
use crate::state::{ConfigError, ConfigSource};
use crossbeam_utils::CachePadded;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An app's current settings.
pub(crate) struct Settings<A> {
    /// Version of the current settings. It has its own cache line, because threads read it before every run
    /// of messages.
    ///
    /// One thread, in `put`, writes `current` under the write lock, and then stores the version with
    /// release ordering, still under the lock. A second thread loads the version with acquire ordering and
    /// then calls `adopt`. If it loads the new version, it therefore adopts the new settings or later ones,
    /// never older ones.
    version: CachePadded<AtomicU32>,
    current: RwLock<Current<A>>,
}

/// One version of the settings, both as a table and as a configured instance.
struct Current<A> {
    version: u32,
    table: toml::Table,
    /// An instance with these settings and without state.
    instance: A,
}

impl<A: App> Settings<A> {
    pub(crate) fn new(instance: A, table: toml::Table, version: u32) -> Self {
        Settings {
            version: CachePadded::new(AtomicU32::new(version)),
            current: RwLock::new(Current { version, table, instance }),
        }
    }

    /// Returns the current version.
    #[inline(always)]
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns an instance with the current settings and without state, and their version.
    pub(crate) fn fresh(&self) -> (A, u32) {
        let current = self.current.read();
        (current.instance.fresh(), current.version)
    }

    /// Copies the current settings into `app` and returns their version.
    #[cold]
    pub(crate) fn adopt(&self, app: &mut A) -> u32 {
        let current = self.current.read();
        app.configure_as(&current.instance);
        current.version
    }

    fn put(&self, instance: A, table: toml::Table, version: u32) {
        let mut current = self.current.write();
        *current = Current { version, table, instance };
        self.version.store(version, Ordering::Release)
    }
}

/// Parses new settings for an app. Returns `None` if they equal the current settings. The returned change
/// takes effect when the caller calls its `put`.
pub(crate) fn change<A: Handlers>(
    app: &Arc<AppRuntime<A>>,
    table: toml::Table,
) -> Result<Option<Change>, ConfigError> {
    let version = {
        let current = app.settings.current.read();
        if current.table == table {
            return Ok(None);
        }
        current.version + 1
    };

    let instance = A::configured(&ConfigSource::new(A::NAME, table.clone()))?;
    let logged = LoggedSettings { version, table: text(A::NAME, &table)? };
    let app = app.clone();
    let index = app.index;
    Ok(Some(Change { app: index, logged, put: Box::new(move || app.settings.put(instance, table, version)) }))
}

/// Encodes settings as TOML.
pub(crate) fn text(app: &str, table: &toml::Table) -> Result<String, ConfigError> {
    toml::to_string(table)
        .map_err(|error| ConfigError { table: format!("apps.{app}"), why: error.to_string() })
}
