//! Collects the status of a hive.

use crate::app::{COPIES, Durability};
use crate::cell::BeeId;
use crate::hive::bee::app::AppRuntime;
#[cfg(feature = "testing")]
use crate::hive::dispatch::app_access::AppAccess;
use crate::hive::dispatch::inner::{AnyApp, Change, Hive, HiveInner};
use crate::hive::message::batch::Address;
use crate::hive::message::reports::{AppStatus, BeeStatus, EmitStatus, HandlerStatus, PeerStatus, Status};
use crate::state::{CellImage, ConfigError};
use crate::time::Time;
#[cfg(feature = "testing")]
use crate::view::Views;
use beehive_protocol::{AppId, LaneId};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Returns the encoded size of a cell in bytes.
fn bytes_of(cell: &CellImage) -> u64 {
    let rows = cell.rows.iter().map(|(row, value)| row.len() + value.len());
    (cell.key.len() + rows.sum::<usize>()) as u64
}

/// Maximum number of bees listed in an app's status.
const BUSIEST: usize = 8;

impl AnyApp for AppRuntime {
    fn name(&self) -> &'static str {
        self.name
    }

    fn handler_name(&self, handler: usize) -> &'static str {
        self.report.get(handler).map_or("?", |r| r.name)
    }

    fn handles(&self, handler: usize) -> &'static str {
        self.report.get(handler).map_or("?", |r| r.message)
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
            let looked = bee
                .peek(|b| (b.traffic.messages, b.traffic.nanoseconds_per_message(), b.traffic.peers()))
                .or_else(|| bee.peek_asleep(|_| Default::default()));
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
                    status.state_bytes =
                        bee.peek(|body| body.app.export().iter().map(bytes_of).sum()).or_else(|| {
                            bee.peek_asleep(|image| image.state.images().map(|cell| bytes_of(&cell)).sum())
                        })
                }
            });
        }

        let handlers = self
            .report
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
            name: self.name,
            settings_version: self.settings.version(),
            replication: COPIES,
            replication_asked: self.options.replication,
            durability: if self.link.is_some() { Durability::Disk } else { Durability::Memory },
            durability_asked: self.options.durability,
            bees: self.bees(),
            bees_created: self.created.load(Ordering::Relaxed),
            bees_merged: self.merged.load(Ordering::Relaxed),
            bees_retired: self.retired.load(Ordering::Relaxed),
            handlers,
            views: self.views.as_ref().map(|views| views.status()),
            busiest,
        }
    }

    #[cfg(feature = "testing")]
    fn views(&self) -> Option<&Arc<Views>> {
        self.views.as_ref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn retire_idle(self: Arc<Self>, hive: &Arc<HiveInner>) {
        AppRuntime::retire_idle(&self, hive);
    }

    fn lanes_ended(self: Arc<Self>, lanes: &[LaneId], hive: &Arc<HiveInner>) {
        AppRuntime::lanes_ended(&self, lanes, hive)
    }

    fn note_ended(&self, bees: &[BeeId]) {
        self.queen.lock().ended.extend(bees)
    }

    fn forget_ended(&self, bees: &[BeeId]) {
        self.queen.lock().ended.retain(|bee| !bees.contains(bee))
    }

    fn change(self: Arc<Self>, table: toml::Table) -> Result<Change, ConfigError> {
        crate::hive::bee::settings::change(&self, table)
    }

    fn has_settings(&self, table: &toml::Table) -> bool {
        self.settings.are(table)
    }

    fn settings_version(&self) -> u32 {
        self.settings.version()
    }

    fn replication_asked(&self) -> u32 {
        self.options.replication
    }

    #[cfg(feature = "testing")]
    fn for_tests(self: Arc<Self>) -> Arc<dyn AppAccess> {
        self
    }

    fn remembered(&self) -> usize {
        let mut size = 0;
        if self.link.is_some() {
            self.routes.for_each_bee(|bee| {
                size += bee
                    .peek(|b| b.pending.as_ref().map_or(0, |pending| pending.seen.size()))
                    .or_else(|| bee.peek_asleep(|image| image.seen.size()))
                    .unwrap_or(0)
            })
        }
        size
    }

    fn clear(&self) -> usize {
        self.take_idle();
        let bees = {
            let mut queen = self.queen.lock();
            queen.is_cleared = true;
            std::mem::take(&mut queen.bees)
        };
        let waiting = bees.values().map(|bee| bee.waiting()).sum();
        self.routes.clear();
        waiting
    }
}

impl HiveInner {
    /// Returns the handler that sent a message: its app, its name, and the message type it handles.
    pub(crate) fn handler_of(
        &self,
        sender: Address,
        handler: Option<u16>,
    ) -> Option<(&'static str, &'static str, &'static str)> {
        let (Address::App(AppId(app)), Some(handler)) = (sender, handler) else { return None };
        let apps = self.apps.read();
        let (app, handler) = (apps.get(usize::from(app))?, usize::from(handler));
        Some((app.name(), app.handler_name(handler), app.handles(handler)))
    }
}

impl Hive {
    /// Returns the current status.
    pub fn status(&self) -> Status {
        self.look(false)
    }

    /// Like [`Hive::status`], but includes the state sizes of the busiest bees. The mailbox of each of
    /// these bees is locked while its state is encoded.
    pub fn status_with_sizes(&self) -> Status {
        self.look(true)
    }

    /// Returns the status. If `sizes` is set, it includes the state sizes of the busiest bees.
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

        let uptime: Duration = inner.platform.now().since(inner.started);
        Status {
            hive: inner.id,
            uptime_seconds: uptime.as_secs(),
            apps: statuses,
            io_bees: inner.io.len(),
            emits,
            credits_free: inner.entrances.free(),
            timers: inner.timers.len(),
            ticks_collapsed: inner.timers.collapsed.load(Ordering::Relaxed),
            mail_shed: inner.io.shed.total(),
            dead_letters: inner.dead_letters.total(),
            dead_letters_kept: inner.dead_letters.kept(),
            dead_letters_dropped: inner.dead_letters.dropped(),
            remembered: apps.iter().map(|app| app.remembered()).sum::<usize>()
                + inner.log_clients().iter().map(|link| link.without_bee.size()).sum::<usize>(),
            cycles: inner.cycles.load(Ordering::Relaxed),
            relieved: inner.workers.overflow.relieved.load(Ordering::Relaxed),
            stuck: inner.stuck_messages(),
        }
    }
}
