//! Changes of settings while the hive is running. Each change makes a new version, and each transaction sees
//! a single version.
//!
//! With a log, a change is committed before any handler sees it. The hive then stores the app's new version.
//! Before each run of messages, the thread running a bee compares the bee's version with the app's. A message
//! is delivered only after the transaction that emitted it. If a bee with new settings sends a message to
//! another bee of its app, that bee therefore handles the message with the same settings or newer ones.

use crate::hive::admission::credits::Cause;
use crate::hive::consensus::journal::{AppId, LoggedSettings, Record};
use crate::hive::dispatch::inner::{Hive, HiveInner};
use crate::hive::dispatch::turn::Place;
use crate::hive::message::batch::{Address, Batch, Source};
use crate::hive::start_error::StartError;
use crate::message::Message;
use crate::state::{ConfigError, names};
use serde::{Deserialize, Serialize};
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
            ReconfigureError::Stopped => write!(f, "the hive has stopped"),
        }
    }
}
impl std::error::Error for ReconfigureError {}

impl From<ReconfigureError> for StartError {
    fn from(error: ReconfigureError) -> Self {
        match error {
            ReconfigureError::UnknownApp { table, known } => StartError::UnknownApp { table, known },
            ReconfigureError::Settings(error) => StartError::Settings(error),
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
    /// settings are committed before they take effect. Changed apps that handle [`Reconfigured`] get this
    /// message. Maps never depend on settings, so no cell moves.
    ///
    /// Cancel-safe: dropping the future does not stop the change.
    ///
    /// # Errors
    ///
    /// See [`ReconfigureError`].
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
        let _one_at_a_time = self.reconfiguring.lock().await;
        let apps = self.apps.read().clone();
        let names: Vec<_> = apps.iter().map(|app| app.name()).collect();

        let mut changes = Vec::new();
        for (app, table) in apps.iter().zip(by_app(tables, &names)?) {
            changes.extend(app.clone().change(table).map_err(ReconfigureError::Settings)?)
        }

        if changes.is_empty() {
            return Ok(Vec::new());
        }

        let changed: Vec<_> = changes.iter().map(|change| (change.app, change.logged.version)).collect();
        self.log_settings(changes.iter().map(|change| (AppId(change.app), change.logged.clone())).collect())
            .await;

        if self.is_stopped() {
            return Err(ReconfigureError::Stopped);
        }

        changes.into_iter().for_each(|change| (change.put)());
        let names = changed.iter().filter_map(|(app, _)| names.get(usize::from(*app)).copied()).collect();
        for (app, version) in changed {
            self.tell_reconfigured(app, version).await
        }

        tracing::info!(apps = ?names, "settings have changed");
        Ok(names)
    }

    /// Writes new settings to the logs of their apps and waits until they are committed.
    async fn log_settings(&self, new: Vec<(AppId, LoggedSettings)>) {
        for link in &self.log_clients() {
            let is_here = |app: AppId| self.log_of(app).is_some_and(|its_log| Arc::ptr_eq(&its_log, link));
            let settings: Vec<_> = new.iter().filter(|(app, _)| is_here(*app)).cloned().collect();
            if !settings.is_empty() {
                // if the hive loses the log, its next leader has settings of its own
                let _ = link.commit(Record::Settings { settings }).await;
            }
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

/// Writes the settings with which the hive started to the logs. If the hive is resuming from a log, also
/// sends `Reconfigured` to the apps, because the logged state may have been produced with other settings, or
/// the earlier incarnation may have ended before notifying the apps.
pub(crate) fn settle(hive: &Arc<HiveInner>, new: Vec<(AppId, LoggedSettings)>, goes_on: bool) {
    let hive = Hive(hive.clone());
    hive.inner().platform.clone().spawn(Box::pin(async move {
        tokio::select! {
            biased;
            () = hive.over() => {}
            () = settled(hive.inner(), new, goes_on) => {}
        }
    }))
}

async fn settled(hive: &Arc<HiveInner>, new: Vec<(AppId, LoggedSettings)>, goes_on: bool) {
    // hold back concurrent changes, which must follow these settings in the log
    let _one_at_a_time = hive.reconfiguring.lock().await;
    hive.log_settings(new).await;

    if goes_on {
        let versions: Vec<_> = hive.apps.read().iter().map(|app| app.settings_version()).collect();
        for (app, version) in (0u16..).zip(versions) {
            hive.tell_reconfigured(app, version).await
        }
    }
}
