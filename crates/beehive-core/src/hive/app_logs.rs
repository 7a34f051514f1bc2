//! Which log each app's records go to, as the builder collects it.

use crate::hive::consensus::journal::{Journal, LogState};
use crate::hive::start_error::StartError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The logs of a hive that is being built.
#[derive(Default)]
pub(in crate::hive) struct AppLogs {
    /// Each journal with the state at which it continues.
    pub(in crate::hive) logs: Vec<(Arc<dyn Journal>, LogState)>,
    /// Position in `logs` of the log for apps that are not in `of_apps`.
    default: Option<usize>,
    /// Position in `logs` of an app's own log; `None` for an app whose state is in memory only.
    of_apps: BTreeMap<String, Option<usize>>,
    /// An app that was named twice.
    twice: Option<String>,
}

impl AppLogs {
    /// Adds the log of all apps that are not named elsewhere. Replaces an earlier one.
    pub(in crate::hive) fn add_default(&mut self, journal: Arc<dyn Journal>, state: LogState) {
        match self.default {
            Some(at) => self.logs[at] = (journal, state),
            None => {
                self.default = Some(self.logs.len());
                self.logs.push((journal, state))
            }
        }
    }

    /// Adds the log of these apps.
    pub(in crate::hive) fn add_of(
        &mut self,
        apps: impl IntoIterator<Item = impl Into<String>>,
        journal: Arc<dyn Journal>,
        state: LogState,
    ) {
        let at = self.logs.len();
        self.logs.push((journal, state));
        self.set(apps, Some(at))
    }

    /// Keeps the state of these apps in memory only.
    pub(in crate::hive) fn keep_in_memory(&mut self, apps: impl IntoIterator<Item = impl Into<String>>) {
        self.set(apps, None)
    }

    fn set(&mut self, apps: impl IntoIterator<Item = impl Into<String>>, log: Option<usize>) {
        for app in apps {
            let app = app.into();
            if self.of_apps.insert(app.clone(), log).is_some() {
                self.twice = Some(app)
            }
        }
    }

    /// Returns the position of each app's log in `logs`.
    ///
    /// # Errors
    /// Returns an error if an app was named twice, or if there is no app of a name.
    pub(in crate::hive) fn of(&self, apps: &[&'static str]) -> Result<Vec<Option<usize>>, StartError> {
        if let Some(app) = self.twice.clone() {
            return Err(StartError::TwoLogs { app });
        }
        if let Some(app) = self.of_apps.keys().find(|name| !apps.contains(&name.as_str())) {
            return Err(StartError::NoSuchApp { app: app.clone(), known: apps.to_vec() });
        }
        Ok(apps.iter().map(|app| self.of_apps.get(*app).copied().unwrap_or(self.default)).collect())
    }
}
