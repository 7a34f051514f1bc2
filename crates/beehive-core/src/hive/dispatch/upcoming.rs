//! Settings that a hive has accepted, and that are not in force yet.
//!
//! Each app has a queue of its own, so a log that cannot commit holds up only the settings of its apps. A queue has room for one
//! step that has begun, and for one that has not. The settings of a later call replace those that have not begun, so a log that
//! never commits costs a bounded amount of memory, and the settings of the last call are those that stay.

use crate::hive::consensus::journal::LoggedSettings;
use crate::hive::dispatch::inner::Change;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio::sync::Notify;

/// One step of an app from its settings to the next ones.
#[derive(Default)]
pub(in crate::hive) struct Step {
    /// Settings that are in force, and not in the app's log yet: those with which the hive has started.
    pub(in crate::hive) unlogged: Option<LoggedSettings>,
    /// New settings.
    pub(in crate::hive) change: Option<Change>,
    /// Whether the app is told that its settings may have changed.
    pub(in crate::hive) tells: bool,
}

/// The steps of one app.
#[derive(Default)]
struct OfApp {
    /// Number of changes that have been accepted.
    accepted: u64,
    /// How many of these are in force, or were replaced by one that is.
    in_force: u64,
    /// Same as `in_force`, but counts a change only when the app has been told.
    told: u64,
    /// The settings accepted last, while they are not in force.
    newest: Option<toml::Table>,
    /// The step that has not begun.
    next: Option<Step>,
    /// Whether a task takes the steps of the app.
    is_taken: bool,
}

/// The upcoming settings of a hive's apps.
#[derive(Default)]
pub(in crate::hive) struct Upcoming {
    /// Locked while the settings of all apps are examined and accepted, so that of two calls, the same one is the later one for
    /// all apps. Nobody waits for a log meanwhile.
    pub(in crate::hive) accepting: tokio::sync::Mutex<()>,
    of_apps: Mutex<BTreeMap<u16, OfApp>>,
    /// Notified when an app has taken a step.
    done: Notify,
}

/// A change that was accepted: the number of the app, and that of the change.
pub(in crate::hive) type Accepted = (u16, u64);

/// The settings of an app that are not in force yet, beside those that somebody wants.
pub(in crate::hive) enum Coming {
    /// The app keeps its settings.
    Nothing,
    /// This change brings the same ones.
    Same(Accepted),
    /// The app gets other ones.
    Others,
}

impl Upcoming {
    /// Compares the settings that an app will have with those in `table`.
    pub(in crate::hive) fn compare(&self, app: u16, table: &toml::Table) -> Coming {
        let of_apps = self.of_apps.lock();
        match of_apps.get(&app).and_then(|of_app| Some((of_app, of_app.newest.as_ref()?))) {
            None => Coming::Nothing,
            Some((of_app, newest)) if newest == table => Coming::Same((app, of_app.accepted)),
            Some(_) => Coming::Others,
        }
    }

    /// Accepts new settings.
    pub(in crate::hive) fn accept(&self, change: Change) -> Accepted {
        let app = change.app;
        let mut of_apps = self.of_apps.lock();
        let of_app = of_apps.entry(app).or_default();
        of_app.accepted += 1;
        of_app.newest = Some(change.table.clone());
        let replaced = of_app.next.get_or_insert_default().change.replace(change);
        let accepted = (app, of_app.accepted);
        drop(of_apps);
        // without the lock, because it contains values of the app
        drop(replaced);
        accepted
    }

    /// Adds what has to be done for an app at the beginning of the hive, or of its leadership of a log.
    pub(in crate::hive) fn begin(&self, app: u16, unlogged: Option<LoggedSettings>, tells: bool) {
        let mut of_apps = self.of_apps.lock();
        let next = of_apps.entry(app).or_default().next.get_or_insert_default();
        next.unlogged = unlogged.or(next.unlogged.take());
        next.tells |= tells
    }

    /// Returns whether the caller has to take the steps of an app: there are some, and nobody takes them. From then on, the caller
    /// calls [`Upcoming::next`] until that returns `None`.
    pub(in crate::hive) fn take(&self, app: u16) -> bool {
        let mut of_apps = self.of_apps.lock();
        let Some(of_app) = of_apps.get_mut(&app).filter(|of_app| of_app.next.is_some()) else { return false };
        !std::mem::replace(&mut of_app.is_taken, true)
    }

    /// Returns the next step of an app, and the number of its change.
    pub(in crate::hive) fn next(&self, app: u16) -> Option<(Step, u64)> {
        let mut of_apps = self.of_apps.lock();
        let of_app = of_apps.get_mut(&app)?;
        let step = of_app.next.take();
        of_app.is_taken = step.is_some();
        Some((step?, of_app.accepted))
    }

    /// Notes that a change is in force.
    pub(in crate::hive) fn is_in_force(&self, (app, change): Accepted) {
        if let Some(of_app) = self.of_apps.lock().get_mut(&app) {
            of_app.in_force = change;
            if of_app.accepted == change {
                of_app.newest = None
            }
        }
        self.done.notify_waiters()
    }

    /// Notes that an app has been told.
    pub(in crate::hive) fn is_told(&self, (app, change): Accepted) {
        if let Some(of_app) = self.of_apps.lock().get_mut(&app) {
            of_app.told = change
        }
        self.done.notify_waiters()
    }

    /// Returns the apps whose changes are not in force.
    pub(in crate::hive) fn late(&self, changes: &[Accepted]) -> Vec<u16> {
        self.without(changes, |of_app| of_app.in_force)
    }

    /// Returns the apps for which `done` returns a lower number than that of their change.
    fn without(&self, changes: &[Accepted], done: impl Fn(&OfApp) -> u64) -> Vec<u16> {
        let of_apps = self.of_apps.lock();
        let is_done =
            |(app, change): &Accepted| of_apps.get(app).is_some_and(|of_app| done(of_app) >= *change);
        changes.iter().filter(|change| !is_done(change)).map(|(app, _)| *app).collect()
    }

    /// Waits until changes are in force, and their apps have been told. Cancel-safe.
    pub(in crate::hive) async fn told(&self, changes: &[Accepted]) {
        loop {
            let done = self.done.notified();
            if self.without(changes, |of_app| of_app.told).is_empty() {
                return;
            }
            done.await
        }
    }
}
