//! Changes of settings while the hive is running. Each change makes a new version, and each transaction sees
//! a single version.
//!
//! With a log, a change is committed before any handler sees it. The hive then stores the app's new version. Each app has a task
//! that does one change after another, so a log that cannot commit holds up only the apps whose settings it contains.
//! Before each run of messages, the thread running a bee compares the bee's version with the app's. A message
//! is delivered only after the transaction that emitted it. If a bee with new settings sends a message to
//! another bee of its app, that bee therefore handles the message with the same settings or newer ones.

use crate::hive::admission::credits::Cause;
use crate::hive::consensus::journal::{AppId, LoggedSettings, Record};
use crate::hive::dispatch::inner::{AnyApp, Change, Hive, HiveInner};
use crate::hive::dispatch::turn::Place;
use crate::hive::dispatch::upcoming::{Accepted, Coming};
use crate::hive::message::batch::{Address, Batch, Source};
use crate::hive::start_error::StartError;
use crate::limits;
use crate::message::Message;
use crate::state::{ConfigError, names};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tells an app that its settings have changed. The hive sends this message to each app that handles it,
/// after each change of the app's settings and when the hive resumes from a log.
///
/// Handlers see the new settings even without this message. The message lets an app act on the consequences
/// of a change, for example by removing flows that are no longer allowed. It may arrive more often than
/// settings change, so its handler must be idempotent.
///
/// ```
/// # extern crate beehive_core as beehive;
/// use beehive::{App, Config, Reconfigured, Table, handlers};
/// # #[derive(serde::Deserialize, Clone, Debug)]
/// # struct Limits { oldest: u32 }
/// #[derive(App)]
/// struct Shelf {
///     books: Table<u64, u32, String>, // by year
///     config: Config<Limits>,
/// }
/// #[handlers]
/// impl Shelf {
///     #[rcv(each = books)]
///     fn reconfigured(&mut self, shelf: &u64, _: &Reconfigured) {
///         let oldest = self.config.oldest;
///         self.books.at(*shelf).retain(|year, _| *year >= oldest);
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reconfigured {
    /// Version of the current settings. Versions count from 1.
    pub version: u32,
}

impl Message for Reconfigured {
    type Reply = ();
    type Error = crate::Error;
    const NAME: &'static str = "beehive::Reconfigured";
}

/// The reasons why a change of settings may be rejected.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// The configuration has a table for an app that the hive does not have.
    UnknownApp {
        /// The table's name.
        table: String,
        /// Names of the hive's apps.
        known: Vec<&'static str>,
    },
    /// An app rejected its settings.
    Settings(ConfigError),
    /// New settings of some apps are not in force after [`limits::SETTINGS_COMMITTED_AFTER_MAX`], because a log of these apps does
    /// not commit: it has not committed the settings, or it leaves no room for the notice of the change before. They take effect
    /// later. Those of all other apps are in force.
    NotCommitted {
        /// Names of the apps whose new settings are not in force.
        apps: Vec<&'static str>,
        /// Positions of their logs, in the order in which the hive was given its journals. The first one is 0.
        logs: Vec<usize>,
    },
    /// The hive has stopped.
    Stopped,
}

impl std::fmt::Display for ReconfigureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReconfigureError::UnknownApp { table, known } => {
                write!(f, "[apps.{table}]: {}", names::refusal("app", table, known))
            }
            ReconfigureError::Settings(error) => write!(f, "{error}"),
            ReconfigureError::NotCommitted { apps, logs } => {
                let logs: Vec<_> = logs.iter().map(usize::to_string).collect();
                let seconds = limits::SETTINGS_COMMITTED_AFTER_MAX.as_secs();
                write!(f, "the new settings of {} are not in force after {seconds} s", apps.join(", "))?;
                if !logs.is_empty() {
                    let logs = logs.join(", ");
                    write!(
                        f,
                        ": a log of these apps does not commit (their settings are in log number {logs})"
                    )?
                }
                write!(f, "; they take effect later, and those of all other apps are in force")
            }
            ReconfigureError::Stopped => write!(f, "the hive has stopped"),
        }
    }
}
beehive_protocol::debug_is_display!(ReconfigureError);

impl std::error::Error for ReconfigureError {}

impl From<ReconfigureError> for StartError {
    fn from(error: ReconfigureError) -> Self {
        match error {
            ReconfigureError::UnknownApp { table, known } => StartError::UnknownApp { table, known },
            ReconfigureError::Settings(error) => StartError::Settings(error),
            ReconfigureError::NotCommitted { .. } => StartError::Log { why: error.to_string() },
            ReconfigureError::Stopped => StartError::Log { why: "the hive has stopped".into() },
        }
    }
}

/// Splits the configuration into one table per app, in the order of the apps. An app not mentioned in the
/// configuration gets an empty table.
pub(crate) fn by_app(
    mut all: toml::Table,
    apps: &[&'static str],
) -> Result<Vec<toml::Table>, ReconfigureError> {
    let of = |name: &&'static str| match all.remove(*name) {
        None => Ok(toml::Table::new()),
        Some(toml::Value::Table(table)) => Ok(table),
        Some(_) => {
            let why = "expected a table of settings".to_string();
            Err(ReconfigureError::Settings(ConfigError { table: format!("apps.{name}"), why }))
        }
    };

    let tables = apps.iter().map(of).collect();
    match all.into_iter().next() {
        Some((table, _)) => Err(ReconfigureError::UnknownApp { table, known: apps.to_vec() }),
        None => tables,
    }
}

impl Hive {
    /// Replaces the settings of all apps with those in the table `apps` of a configuration, by app name. An
    /// app without a table gets its defaults. Returns the apps whose settings have changed.
    ///
    /// If one app rejects its settings, nothing changes. Each transaction that begins after the change sees
    /// the new settings, and no transaction sees a mixture of old and new ones. With a journal, the
    /// settings are committed before they take effect, for each app in its own log: a log that cannot commit does not hold up the
    /// settings of apps with other logs. Changed apps that handle [`Reconfigured`] get this
    /// message. Maps never depend on settings, so no cell moves.
    ///
    /// The last of several calls decides. A later call replaces settings of an app that the hive has not begun to write: they
    /// never take effect, and the earlier call waits for those of the later one.
    ///
    /// Cancel-safe: dropping the future does not stop the change.
    ///
    /// # Errors
    ///
    /// See [`ReconfigureError`]. After [`ReconfigureError::NotCommitted`], the change goes on.
    pub async fn reconfigure(&self, apps: toml::Table) -> Result<Vec<&'static str>, ReconfigureError> {
        let hive = self.inner().clone();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let over = self.clone();
        self.inner().platform.spawn(Box::pin(async move {
            let outcome = tokio::select! {
                biased;
                outcome = hive.reconfigure(apps) => outcome,
                () = over.over() => Err(ReconfigureError::Stopped),
            };
            let _ = sender.send(outcome);
        }));

        receiver.await.unwrap_or(Err(ReconfigureError::Stopped))
    }
}

impl HiveInner {
    async fn reconfigure(
        self: &Arc<Self>,
        tables: toml::Table,
    ) -> Result<Vec<&'static str>, ReconfigureError> {
        let apps = self.apps.read().clone();
        let names: Vec<_> = apps.iter().map(|app| app.name()).collect();
        let accepted = self.accept(&apps, by_app(tables, &names)?).await?;
        if accepted.is_empty() {
            return Ok(Vec::new());
        }
        // created before the check, so that no notification is lost
        let stopping = self.stopping.notified();
        if self.is_stopped() {
            return Err(ReconfigureError::Stopped);
        }

        accepted.iter().for_each(|(app, _)| carry_out(self, *app));
        tokio::select! {
            biased;
            () = self.upcoming.told(&accepted) => {}
            () = stopping => return Err(ReconfigureError::Stopped),
            () = self.platform.sleep(limits::SETTINGS_COMMITTED_AFTER_MAX) => {}
        }
        let name = |app: &u16| names.get(usize::from(*app)).copied();
        let late = self.upcoming.late(&accepted);
        if !late.is_empty() {
            let log = |app: &u16| Some(self.log_of(AppId(*app))?.position());
            let logs: BTreeSet<usize> = late.iter().filter_map(log).collect();
            let apps = late.iter().filter_map(name).collect();
            return Err(ReconfigureError::NotCommitted { apps, logs: logs.into_iter().collect() });
        }

        let names: Vec<_> = accepted.iter().filter_map(|(app, _)| name(app)).collect();
        tracing::info!(apps = ?names, "settings have changed");
        Ok(names)
    }

    /// Accepts new settings of all apps, or none if one app rejects its own. Returns the changes that will be in force then,
    /// also those that an earlier call has made, and that are not in force yet.
    async fn accept(
        &self,
        apps: &[Arc<dyn AnyApp>],
        tables: Vec<toml::Table>,
    ) -> Result<Vec<Accepted>, ReconfigureError> {
        let _one_at_a_time = self.upcoming.accepting.lock().await;
        let (mut accepted, mut changes) = (Vec::new(), Vec::new());
        for ((at, app), table) in (0u16..).zip(apps).zip(tables) {
            match self.upcoming.compare(at, &table) {
                Coming::Same(change) => accepted.push(change),
                Coming::Nothing if app.has_settings(&table) => {}
                _ => changes.push(app.clone().change(table).map_err(ReconfigureError::Settings)?),
            }
        }
        accepted.extend(changes.into_iter().map(|change| self.upcoming.accept(change)));
        accepted.sort_unstable();
        Ok(accepted)
    }

    /// Takes the steps of an app until none is left.
    async fn take_steps(self: &Arc<Self>, at: u16) {
        let Some(app) = self.apps.read().get(usize::from(at)).cloned() else { return };
        while let Some((step, change)) = self.upcoming.next(at) {
            if let Some(settings) = step.unlogged {
                self.log_settings(at, settings).await
            }
            let tells = step.tells || step.change.is_some();
            if let Some(Change { text, put, .. }) = step.change {
                let version = app.settings_version() + 1;
                self.log_settings(at, LoggedSettings { version, table: text }).await;
                if self.is_stopped() {
                    return;
                }
                put(version);
                self.upcoming.is_in_force((at, change))
            }
            if tells {
                self.tell_reconfigured(at, app.settings_version()).await
            }
            self.upcoming.is_told((at, change))
        }
    }

    /// Writes new settings of an app to its log and waits until they are committed.
    async fn log_settings(&self, app: u16, settings: LoggedSettings) {
        if let Some(link) = self.log_of(AppId(app)) {
            // if the hive loses the log, its next leader has settings of its own
            let _ = link.commit(Record::Settings { settings: vec![(AppId(app), settings)] }).await;
        }
    }

    /// Sends `Reconfigured` to an app if the app handles it.
    async fn tell_reconfigured(self: &Arc<Self>, app: u16, version: u32) {
        let kind = self.types.kind::<Reconfigured>();
        if kind.receiver_of(app).is_none() {
            return;
        }

        let entrance = self.entrance_to(&[AppId(app)]);
        self.room_at(&entrance).await;

        let source = Source::outside(self.id, self.platform.random());
        let cause = Cause::new(&entrance.credits, 1, &self.in_flight);
        self.from_outside(source, &entrance, cause, Place::Runners, |source, admitted, cx| {
            let batch = Batch {
                messages: vec![Reconfigured { version }],
                passed: None,
                source,
                sink: None,
                admitted,
                arrival: None,
            };
            let batch = Arc::new(batch);
            kind.send(&batch, 0..1, Address::App(AppId(app)), cx)
        })
    }
}

/// Begins a task that takes the steps of an app, if there are any, and no such task is running.
fn carry_out(hive: &Arc<HiveInner>, app: u16) {
    if !hive.upcoming.take(app) {
        return;
    }
    let hive = Hive(hive.clone());
    hive.inner().platform.clone().spawn(Box::pin(async move {
        tokio::select! {
            biased;
            () = hive.over() => {}
            () = hive.inner().take_steps(app) => {}
        }
    }))
}

/// Writes the settings with which the hive started to the logs. If the hive is resuming from a log, also
/// sends `Reconfigured` to the apps, because the logged state may have been produced with other settings, or
/// the earlier incarnation may have ended before notifying the apps. Changes of these settings follow them in the log.
///
/// Apps with different logs do not wait for one another. A crash may therefore leave new settings in one log and old ones in
/// another. The next start compares the settings of each app with those in its log.
pub(crate) fn settle(hive: &Arc<HiveInner>, new: Vec<(AppId, LoggedSettings)>, goes_on: bool) {
    let mut new: BTreeMap<AppId, LoggedSettings> = new.into_iter().collect();
    let apps = hive.apps.read().len();
    for app in (0u16..).take(apps) {
        let unlogged = new.remove(&AppId(app));
        if goes_on || unlogged.is_some() {
            hive.upcoming.begin(app, unlogged, goes_on);
            carry_out(hive, app)
        }
    }
}
