//! One app's settings on this hive, and their version.

use crate::hive::bee::app::AppRuntime;
use crate::hive::consensus::journal::LoggedSettings;
use crate::hive::dispatch::inner::Change;
use crate::panics;
use crate::state::any::AnyState;
use crate::state::{ConfigError, ConfigSource};
use crossbeam_utils::CachePadded;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An app's current settings.
pub(crate) struct Settings {
    /// Version of the current settings. It has its own cache line, because threads read it before every run
    /// of messages.
    ///
    /// One thread, in `put`, writes `current` under the write lock, and then stores the version with
    /// release ordering, still under the lock. A second thread loads the version with acquire ordering and
    /// then calls `adopt`. If it loads the new version, it therefore adopts the new settings or later ones,
    /// never older ones.
    version: CachePadded<AtomicU32>,
    current: RwLock<Current>,
}

/// One version of the settings, both as a table and as a configured instance.
struct Current {
    version: u32,
    table: toml::Table,
    /// An instance with these settings and without state.
    instance: Box<dyn AnyState>,
}

impl Settings {
    pub(crate) fn new(instance: Box<dyn AnyState>, table: toml::Table, version: u32) -> Self {
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

    /// Checks whether the current settings are those in a table.
    pub(crate) fn are(&self, table: &toml::Table) -> bool {
        self.current.read().table == *table
    }

    /// Returns an instance with the current settings and without state, and their version.
    pub(crate) fn fresh(&self) -> (Box<dyn AnyState>, u32) {
        self.with(|instance, version| (instance.fresh(), version))
    }

    /// Calls `with` with an instance that has the current settings and no state, and their version.
    pub(crate) fn with<R>(&self, with: impl FnOnce(&dyn AnyState, u32) -> R) -> R {
        let current = self.current.read();
        with(&*current.instance, current.version)
    }

    /// Copies the current settings into `app` and returns their version.
    #[cold]
    pub(crate) fn adopt(&self, app: &mut dyn AnyState) -> u32 {
        self.with(|instance, version| {
            app.configure_as(instance);
            version
        })
    }

    /// Returns the current settings in the form used in a log.
    pub(crate) fn logged(&self, app: &str) -> Result<LoggedSettings, ConfigError> {
        let current = self.current.read();
        Ok(LoggedSettings { version: current.version, table: text(app, &current.table)? })
    }

    fn put(&self, instance: Box<dyn AnyState>, table: toml::Table, version: u32) {
        let mut current = self.current.write();
        let old = std::mem::replace(&mut *current, Current { version, table, instance });
        self.version.store(version, Ordering::Release);
        drop(current);
        // without the lock, because it contains values of the app
        panics::harmless(|| drop(old));
    }
}

/// Parses new settings for an app. The returned change takes effect when the caller calls its `put`.
pub(crate) fn change(app: &Arc<AppRuntime>, table: toml::Table) -> Result<Change, ConfigError> {
    // this runs code of the app, so no lock is held
    let instance = app.fresh().configured(&ConfigSource::new(app.name, table.clone()))?;
    let text = text(app.name, &table)?;
    let (index, of_change) = (app.index, table.clone());
    let app = app.clone();
    let put = Box::new(move |version| app.settings.put(instance, of_change, version));
    Ok(Change { app: index, table, text, put })
}

/// Encodes settings as TOML.
pub(crate) fn text(app: &str, table: &toml::Table) -> Result<String, ConfigError> {
    toml::to_string(table)
        .map_err(|error| ConfigError { table: format!("apps.{app}"), why: error.to_string() })
}
