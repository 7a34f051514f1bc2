//! What a hive can tell about itself.

use crate::app::{COPIES, Handlers};
use crate::cell::{BeeId, HiveId};
use crate::hive::bee::app::AppRuntime;
#[cfg(feature = "testing")]
use crate::hive::observe::app_access::AppAccess;
use crate::hive::settings::Change;
use crate::hive::{Address, Hive, HiveInner, settings};
use crate::state::column::Columns;
use crate::state::{CellImage, ConfigError};
use crate::time::Time;
use crate::view::SnapshotStatus;
#[cfg(feature = "testing")]
use crate::view::Snapshots;
use serde::Serialize;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An app whose type is not known here.
pub(crate) trait AnyApp: Send + Sync {
    fn name(&self) -> &'static str;
    fn handler_name(&self, handler: usize) -> &'static str;
    /// What a handler handles.
    fn handles(&self, handler: usize) -> &'static str;
    /// `sizes`: also the bytes of the state of its busiest bees.
    /// `apps`: the names of all apps, by number.
    /// A handler holds its thread; it does so for too long.
    fn note_held(&self, handler: usize, now: Time, too_long: bool);
    fn status(&self, sizes: bool, apps: &[&'static str]) -> AppStatus;
    fn retire_idle(self: Arc<Self>, hive: &Arc<HiveInner>);
    /// Forgets all bees; returns how many runs of messages waited for them.
    fn clear(&self) -> usize;
    /// Its snapshots, if anybody reads them.
    #[cfg(feature = "testing")]
    fn snapshots(&self) -> Option<&Arc<Snapshots>>;
    fn as_any(&self) -> &dyn Any;
    /// What its idle bees remember of messages.
    fn remembered(&self) -> usize;
    /// Reads settings for it; nothing if they are those in force.
    fn change(self: Arc<Self>, table: toml::Table) -> Result<Option<Change>, ConfigError>;
    fn settings_version(&self) -> u32;
    /// Returns the number of copies that `#[app(replication = n)]` asks for.
    fn replication_asked(&self) -> u32;
    /// Returns the operations that only tests need.
    #[cfg(feature = "testing")]
    fn for_tests(self: Arc<Self>) -> Arc<dyn AppAccess>;
}

/// A hive as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Its number in the cluster.
    pub hive: HiveId,
    /// Seconds since it started.
    pub uptime_seconds: u64,
    /// Its apps, in order.
    pub apps: Vec<AppStatus>,
    /// IO bees: sockets and other things outside.
    pub io_bees: usize,
    /// What causes what.
    pub emits: Vec<EmitStatus>,
    /// Messages from outside that may be brought in now through the hive itself.
    pub credits_free: u32,
    /// Timers that wait.
    pub timers: usize,
    /// Ticks left out because the one before was not done.
    pub ticks_collapsed: u64,
    /// Messages and answers thrown away because their IO bee did not read, since the start.
    pub mail_shed: u64,
    /// Messages that could not be handled, since the start.
    pub dead_letters: u64,
    /// Of these, letters that are kept, and can be looked at and sent again.
    pub dead_letters_kept: usize,
    /// Of these, letters that are not kept any more, to make room for later ones.
    pub dead_letters_dropped: u64,
    /// What the bees that are idle now remember so that no message is handled twice: lanes, and runs of numbers above
    /// their floors.
    pub remembered: usize,
    /// Chains of messages that were cut off.
    pub cycles: u64,
    /// Times that bees were taken from behind a handler that held its thread.
    pub relieved: u64,
    /// Messages that hold their handlers for too long, now.
    pub stuck: Vec<StuckStatus>,
}

/// One app.
#[derive(Clone, Debug, Serialize)]
pub struct AppStatus {
    /// Its name.
    pub name: &'static str,
    /// The version of its settings: 1 at first, and one more with each change.
    pub settings_version: u32,
    /// Hives that keep a copy of its state: 1, because there is no cluster yet.
    pub replication: u32,
    /// Hives that should keep a copy, as `#[app(replication = n)]` asks.
    pub replication_asked: u32,
    /// Bees it has on this hive.
    pub bees: usize,
    /// Bees made so far.
    pub bees_created: u64,
    /// Bees that merged into another.
    pub bees_merged: u64,
    /// Bees that had nothing left to own.
    pub bees_retired: u64,
    /// Its handlers, in the order of the source.
    pub handlers: Vec<HandlerStatus>,
    /// Its snapshots, if anybody reads them.
    pub snapshots: Option<SnapshotStatus>,
    /// The bees that handled most, of those that are idle now.
    pub busiest: Vec<BeeStatus>,
}

/// One handler.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerStatus {
    /// Its name.
    pub name: &'static str,
    /// What it handles.
    pub message: &'static str,
    /// What it answers with; empty if it cannot answer.
    pub answer: &'static str,
    /// Kind of its map.
    pub kind: &'static str,
    /// Its cells.
    pub cells: &'static str,
    /// Messages handled, failures included.
    pub messages: u64,
    /// Messages that its map dropped.
    pub dropped: u64,
    /// Messages answered with an error.
    pub errors: u64,
    /// Messages at which it panicked or broke a rule.
    pub panics: u64,
    /// Messages that it gave an answer to.
    pub answered: u64,
    /// Runs of its messages that waited until their cells had one owner: this handler is what merges bees.
    pub waited: u64,
    /// Messages that it took longer for than [`Builder::stuck_after`](crate::Builder::stuck_after) says.
    pub stuck: u64,
}

/// A message that holds its handler for too long, and with it a thread and its cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StuckStatus {
    /// The app.
    pub app: &'static str,
    /// The handler.
    pub handler: &'static str,
    /// What it handles.
    pub message: &'static str,
    /// The first cell that it holds, in hexadecimal; none if it has none.
    pub cell: Option<String>,
    /// The chain of causes that the message belongs to, in hexadecimal; of messages that are run together, the first one's.
    pub chain: String,
    /// The message (JSON), or the first part of it; empty where its handler has never taken long before.
    pub words: String,
    /// How long it has been so.
    pub milliseconds: u64,
}

/// One bee.
#[derive(Clone, Debug, Serialize)]
pub struct BeeStatus {
    /// The bee.
    pub bee: BeeId,
    /// Messages it handled.
    pub messages: u64,
    /// Runs of messages that wait for it.
    pub waiting: usize,
    /// Cells that it owns.
    pub cells: usize,
    /// What a message takes in its handlers, on average over some; none if none was timed yet.
    pub nanoseconds_per_message: Option<u64>,
    /// Bytes of its state, encoded; only if they were asked for.
    pub state_bytes: Option<u64>,
    /// Who its messages came from.
    pub from: Vec<PeerStatus>,
}

/// Who sends to a bee.
#[derive(Clone, Debug, Serialize)]
pub struct PeerStatus {
    /// The sender; none: outside, or a stateless handler. The last of many stands for all further ones.
    pub bee: Option<BeeId>,
    /// The sender's app, by which bees are numbered; none if it came from outside.
    pub app: Option<&'static str>,
    /// Messages that came from it.
    pub messages: u64,
}

/// How often a handler emitted a type of message.
#[derive(Clone, Debug, Serialize)]
pub struct EmitStatus {
    /// The app.
    pub app: &'static str,
    /// The handler.
    pub handler: &'static str,
    /// What it handles.
    pub upon: &'static str,
    /// What it emitted.
    pub message: &'static str,
    /// How often.
    pub count: u64,
}

/// Bytes of a cell, encoded.
fn bytes_of(cell: &CellImage) -> u64 {
    let rows = cell.rows.iter().map(|(row, value)| row.len() + value.len());
    (cell.key.len() + rows.sum::<usize>()) as u64
}

/// Bees shown of each app.
const BUSIEST: usize = 8;

impl<A: Handlers> AnyApp for AppRuntime<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn handler_name(&self, handler: usize) -> &'static str {
        A::REPORT.get(handler).map_or("?", |r| r.name)
    }

    fn handles(&self, handler: usize) -> &'static str {
        A::REPORT.get(handler).map_or("?", |r| r.message)
    }

    fn note_held(&self, handler: usize, now: Time, too_long: bool) {
        let Some(counters) = self.handlers.get(handler) else { return };
        counters.hold(now);
        if too_long {
            counters.stuck.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn status(&self, sizes: bool, apps: &[&'static str]) -> AppStatus {
        let mut busiest: Vec<BeeStatus> = Vec::new();
        self.routes.for_each_bee(|bee| {
            let looked =
                bee.peek(|b| (b.traffic.messages, b.traffic.nanoseconds_per_message(), b.traffic.peers()));
            let Some((messages, nanoseconds_per_message, from)) = looked else { return };
            let from = from.into_iter().map(|(peer, messages)| PeerStatus {
                bee: peer.bee(),
                app: peer.app().and_then(|app| apps.get(app).copied()),
                messages,
            });
            let (waiting, cells) = (bee.waiting(), bee.cells_owned());
            busiest.push(BeeStatus {
                bee: bee.id,
                messages,
                waiting,
                cells,
                nanoseconds_per_message,
                state_bytes: None,
                from: from.collect(),
            });
            if busiest.len() >= 4 * BUSIEST {
                busiest.sort_by_key(|b| std::cmp::Reverse(b.messages));
                busiest.truncate(BUSIEST)
            }
        });
        busiest.sort_by_key(|b| std::cmp::Reverse(b.messages));
        busiest.truncate(BUSIEST);
        if sizes {
            self.routes.for_each_bee(|bee| {
                if let Some(status) = busiest.iter_mut().find(|b| b.bee == bee.id) {
                    status.state_bytes = bee.peek(|body| body.app.export(true).iter().map(bytes_of).sum())
                }
            });
        }
        let handlers = A::REPORT
            .iter()
            .zip(&self.handlers)
            .map(|(r, c)| HandlerStatus {
                name: r.name,
                message: r.message,
                answer: r.answer,
                kind: r.kind,
                cells: r.cells,
                messages: c.messages.load(Ordering::Relaxed),
                dropped: c.dropped.load(Ordering::Relaxed),
                errors: c.errors.load(Ordering::Relaxed),
                panics: c.panics.load(Ordering::Relaxed),
                answered: c.answered.load(Ordering::Relaxed),
                waited: c.waited.load(Ordering::Relaxed),
                stuck: c.stuck.load(Ordering::Relaxed),
            })
            .collect();
        AppStatus {
            name: A::NAME,
            settings_version: self.settings.version(),
            replication: COPIES,
            replication_asked: A::OPTIONS.replication,
            bees: self.bees(),
            bees_created: self.created.load(Ordering::Relaxed),
            bees_merged: self.merged.load(Ordering::Relaxed),
            bees_retired: self.retired.load(Ordering::Relaxed),
            handlers,
            snapshots: self.snapshots.as_ref().map(|snapshots| snapshots.status()),
            busiest,
        }
    }

    #[cfg(feature = "testing")]
    fn snapshots(&self) -> Option<&Arc<Snapshots>> {
        self.snapshots.as_ref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn retire_idle(self: Arc<Self>, hive: &Arc<HiveInner>) {
        AppRuntime::retire_idle(&self, hive);
    }

    fn change(self: Arc<Self>, table: toml::Table) -> Result<Option<Change>, ConfigError> {
        settings::change(&self, table)
    }

    fn settings_version(&self) -> u32 {
        self.settings.version()
    }

    fn replication_asked(&self) -> u32 {
        A::OPTIONS.replication
    }

    #[cfg(feature = "testing")]
    fn for_tests(self: Arc<Self>) -> Arc<dyn AppAccess> {
        self
    }

    fn remembered(&self) -> usize {
        let mut size = 0;
        if self.link.is_some() {
            self.routes.for_each_bee(|bee| {
                size += bee.peek(|b| b.tail.as_ref().map_or(0, |tail| tail.seen.size())).unwrap_or(0)
            })
        }
        size
    }

    fn clear(&self) -> usize {
        self.take_idle();
        let bees = std::mem::take(&mut self.queen.lock().bees);
        let waiting = bees.values().map(|bee| bee.waiting()).sum();
        self.routes.clear();
        waiting
    }
}

impl HiveInner {
    /// The handler of whoever sent a message: its app, its name, and what it handles.
    pub(crate) fn handler_of(
        &self,
        sender: Address,
        handler: Option<u16>,
    ) -> Option<(&'static str, &'static str, &'static str)> {
        let (Address::App(app), Some(handler)) = (sender, handler) else { return None };
        let apps = self.apps.read();
        let (app, handler) = (apps.get(usize::from(app))?, usize::from(handler));
        Some((app.name(), app.handler_name(handler), app.handles(handler)))
    }
}

impl Hive {
    /// The hive as it is now.
    pub fn status(&self) -> Status {
        self.look(false)
    }

    /// As [`Hive::status`], with the bytes of the state of the busiest bees: each of them is encoded for that, and waits
    /// meanwhile.
    pub fn status_with_sizes(&self) -> Status {
        self.look(true)
    }

    fn look(&self, sizes: bool) -> Status {
        let inner = self.inner();
        let apps: Vec<Arc<dyn AnyApp>> = inner.apps.read().clone();
        let names: Vec<&'static str> = apps.iter().map(|app| app.name()).collect();
        let statuses: Vec<AppStatus> = apps.iter().map(|app| app.status(sizes, &names)).collect();
        let mut emits: Vec<EmitStatus> = inner
            .emits
            .lock()
            .iter()
            .filter_map(|((app, handler, message), count)| {
                let app = statuses.get(*app as usize)?;
                let handler = app.handlers.get(*handler as usize)?;
                Some(EmitStatus {
                    app: app.name,
                    handler: handler.name,
                    upon: handler.message,
                    message,
                    count: count.load(Ordering::Relaxed),
                })
            })
            .collect();
        emits.sort_by_key(|e| (e.app, e.handler, e.message));
        let uptime: Duration = inner.now().since(inner.started);
        Status {
            hive: inner.id,
            uptime_seconds: uptime.as_secs(),
            apps: statuses,
            io_bees: inner.io.len(),
            emits,
            credits_free: inner.credits.free(),
            timers: inner.timers.len(),
            ticks_collapsed: inner.timers.collapsed.load(Ordering::Relaxed),
            mail_shed: inner.io.shed.total(),
            dead_letters: inner.dead_letters.total(),
            dead_letters_kept: inner.dead_letters.kept(),
            dead_letters_dropped: inner.dead_letters.dropped(),
            remembered: apps.iter().map(|app| app.remembered()).sum::<usize>()
                + inner.link.as_ref().map_or(0, |link| link.unowned.size()),
            cycles: inner.cycles.load(Ordering::Relaxed),
            relieved: inner.workers.relief.relieved.load(Ordering::Relaxed),
            stuck: inner.workers.relief.stuck.list(),
        }
    }
}
