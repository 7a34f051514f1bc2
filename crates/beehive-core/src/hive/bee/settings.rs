//! The settings of one app that are in force on this hive.

use crate::app::{App, Handlers};
use crate::hive::bee::app::AppRuntime;
use crate::hive::consensus::journal::LoggedSettings;
use crate::hive::dispatch::inner::Change;
use crate::state::{ConfigError, ConfigSource};
use crossbeam_utils::CachePadded;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is in force at an app.
pub(crate) struct Settings<A> {
    /// Read before every run of messages, and therefore not next to what is written.
    version: CachePadded<AtomicU32>,
    current: RwLock<Current<A>>,
}

struct Current<A> {
    version: u32,
    table: toml::Table,
    /// Without cells.
    instance: A,
}

impl<A: App> Settings<A> {
    pub(crate) fn new(instance: A, table: toml::Table, version: u32) -> Self {
        Settings {
            version: CachePadded::new(AtomicU32::new(version)),
            current: RwLock::new(Current { version, table, instance }),
        }
    }

    /// The version in force.
    #[inline(always)]
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// An instance without cells, and the version of its settings.
    pub(crate) fn fresh(&self) -> (A, u32) {
        let current = self.current.read();
        (current.instance.fresh(), current.version)
    }

    /// Gives `app` the settings in force; returns their version.
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

/// Reads settings for an app. Nothing if they are those in force.
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

/// Settings as TOML.
pub(crate) fn text(app: &str, table: &toml::Table) -> Result<String, ConfigError> {
    toml::to_string(table)
        .map_err(|error| ConfigError { table: format!("apps.{app}"), why: error.to_string() })
}
