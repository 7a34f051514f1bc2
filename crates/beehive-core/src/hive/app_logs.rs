//! The logs to which each app's records go. The builder collects them.

use crate::app::Durability;
use crate::hive::consensus::journal::{Journal, LogState};
use crate::hive::start_error::StartError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A log: the journal, and the state from which it continues.
type Log = (Arc<dyn Journal>, LogState);

/// The logs of a hive under construction.
#[derive(Default)]
pub(in crate::hive) struct AppLogs {
    /// Each journal, with the state from which it continues.
    pub(in crate::hive) logs: Vec<Log>,
    /// The positions in `logs` for all apps that are not in `of_apps`.
    default: Vec<usize>,
    /// The positions in `logs` of an app's own logs; empty for an app whose state is in memory only.
    of_apps: BTreeMap<String, Vec<usize>>,
    /// The durability that apps declare for themselves.
    declared: BTreeMap<&'static str, Durability>,
    /// The durability of apps that declare none.
    pub(in crate::hive) durability: Durability,
    /// An app that was named more than once.
    twice: Option<String>,
}

impl AppLogs {
    fn add(&mut self, logs: impl IntoIterator<Item = Log>) -> Vec<usize> {
        let first = self.logs.len();
        self.logs.extend(logs);
        (first..self.logs.len()).collect()
    }

    /// Adds the logs for all apps that are not named elsewhere, replacing those added by earlier calls. Each
    /// bee is in one of these logs.
    pub(in crate::hive) fn add_default(&mut self, logs: impl IntoIterator<Item = Log>) {
        self.default = self.add(logs)
    }

    /// Adds logs for these apps.
    pub(in crate::hive) fn add_of(
        &mut self,
        apps: impl IntoIterator<Item = impl Into<String>>,
        logs: impl IntoIterator<Item = Log>,
    ) {
        let added = self.add(logs);
        self.set(apps, added)
    }

    /// Keeps the state of these apps in memory only.
    pub(in crate::hive) fn keep_in_memory(&mut self, apps: impl IntoIterator<Item = impl Into<String>>) {
        self.set(apps, Vec::new())
    }

    /// Notes what an app's `#[app(durability = "..")]` says.
    pub(in crate::hive) fn declare(&mut self, app: &'static str, durability: Durability) {
        self.declared.insert(app, durability);
    }

    fn set(&mut self, apps: impl IntoIterator<Item = impl Into<String>>, logs: Vec<usize>) {
        for app in apps {
            let app = app.into();
            if self.of_apps.insert(app.clone(), logs.clone()).is_some() {
                self.twice = Some(app)
            }
        }
    }

    /// Returns the positions of each app's logs in `logs`. The first one is the app's home log, which
    /// contains everything that belongs to no bee.
    ///
    /// # Errors
    ///
    /// Returns an error if an app was named more than once, if a name is not that of an app in `apps`, or if an app
    /// with a log of its own is declared with `#[app(durability = "memory")]`.
    pub(in crate::hive) fn of(&self, apps: &[&'static str]) -> Result<Vec<Vec<usize>>, StartError> {
        if let Some(app) = self.twice.clone() {
            return Err(StartError::TwoLogs { app });
        }
        if let Some(app) = self.of_apps.keys().find(|name| !apps.contains(&name.as_str())) {
            return Err(StartError::NoSuchApp { app: app.clone(), known: apps.to_vec() });
        }
        let logs = |app: &&'static str| match (self.of_apps.get(*app), self.declared.get(app)) {
            (Some(logs), Some(Durability::Memory)) if !logs.is_empty() => {
                Err(StartError::LogInMemory { app })
            }
            (Some(logs), _) => Ok(logs.clone()),
            (None, declared) => Ok(match declared.unwrap_or(&self.durability) {
                Durability::Disk => self.default.clone(),
                Durability::Memory => Vec::new(),
            }),
        };
        apps.iter().map(logs).collect()
    }
}
