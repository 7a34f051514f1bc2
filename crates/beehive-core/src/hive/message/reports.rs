//! The data reported by a hive about itself.

use crate::app::Durability;
use crate::cell::{BeeId, HiveId};
use crate::view::ViewStatus;
use serde::Serialize;

/// A hive's status.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Number of the hive in the cluster.
    pub hive: HiveId,
    /// Seconds since the hive started.
    pub uptime_seconds: u64,
    /// The apps, in the order in which they were added to the builder.
    pub apps: Vec<AppStatus>,
    /// Number of IO bees.
    pub io_bees: usize,
    /// Counts of emitted messages, by handler and message type.
    pub emits: Vec<EmitStatus>,
    /// Free credits for requests and single messages from outside. Apps with different logs have credits of their own; this is
    /// the number of those that have the fewest left.
    pub credits_free: u32,
    /// Number of timers that have not yet fired.
    pub timers: usize,
    /// Number of ticks skipped because the previous tick was still in flight. If only some of the cells missed a tick of
    /// `#[every(.., each = ..)]`, it counts, too.
    pub ticks_collapsed: u64,
    /// Number of messages and answers dropped since the start because an IO bee did not read its inbox.
    pub mail_shed: u64,
    /// Number of dead letters since the start.
    pub dead_letters: u64,
    /// Number of dead letters currently kept, which can be listed.
    pub dead_letters_kept: usize,
    /// Number of dead letters evicted to make room for newer ones.
    pub dead_letters_dropped: u64,
    /// Total size of the dedup tables of all bees that are currently idle: the number of lanes, of runs of
    /// sequence numbers above their floors, and of message parts.
    pub remembered: usize,
    /// Number of times that a handler failed because a causal chain exceeded the hop limit, or that outputs were
    /// dropped because a log record would have been too large.
    pub cycles: u64,
    /// Number of times that the watchdog moved bees to other threads because they were waiting behind a
    /// handler that held its thread.
    pub relieved: u64,
    /// The messages whose handlers have been running for too long.
    pub stuck: Vec<StuckStatus>,
}

/// One app's status.
#[derive(Clone, Debug, Serialize)]
pub struct AppStatus {
    /// The name.
    pub name: &'static str,
    /// Version of the settings. It starts at 1 and increases by one with each change.
    pub settings_version: u32,
    /// Number of hives that keep a copy of the state. Always 1, because there is no cluster yet.
    pub replication: u32,
    /// Number of hives that should keep a copy of the state, as requested by `#[app(replication = n)]`.
    pub replication_asked: u32,
    /// The durability of the state: `disk` if the app has a log.
    pub durability: Durability,
    /// The durability that the app declares with `#[app(durability = "..")]`, if it declares one.
    pub durability_asked: Option<Durability>,
    /// Number of the app's bees on this hive.
    pub bees: usize,
    /// Number of bees created so far.
    pub bees_created: u64,
    /// Number of bees merged into another bee.
    pub bees_merged: u64,
    /// Number of bees retired because all their cells were empty.
    pub bees_retired: u64,
    /// The handlers, in the order in which the source defines them.
    pub handlers: Vec<HandlerStatus>,
    /// State of the app's views; `None` if nothing reads them.
    pub views: Option<ViewStatus>,
    /// The currently idle bees that have handled the most messages.
    pub busiest: Vec<BeeStatus>,
}

/// One handler's status.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerStatus {
    /// The name.
    pub name: &'static str,
    /// The message type that the handler accepts, or the period of its timer.
    pub message: &'static str,
    /// The answer type; empty if the handler cannot answer.
    pub answer: &'static str,
    /// The kind of the handler's map.
    pub kind: &'static str,
    /// The cells that the handler may touch, in source notation.
    pub cells: &'static str,
    /// Number of messages handled, including failures.
    pub messages: u64,
    /// Number of messages that the map dropped.
    pub dropped: u64,
    /// Number of messages that the handler answered with an error.
    pub errors: u64,
    /// Number of messages on which the handler panicked or broke a rule.
    pub panics: u64,
    /// Number of messages that the handler answered.
    pub answered: u64,
    /// Number of message runs blocked until a single bee owned their cells. A high number indicates that the
    /// handler causes bees to merge.
    pub waited: u64,
    /// Number of messages that took longer than [`Builder::stuck_after`](crate::Builder::stuck_after).
    pub stuck: u64,
}

/// A message whose handler has been running for too long. It occupies a thread and blocks its bee's cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StuckStatus {
    /// The app.
    pub app: &'static str,
    /// The handler.
    pub handler: &'static str,
    /// The message type that the handler accepts, or the period of its timer.
    pub message: &'static str,
    /// The first mapped cell, in hexadecimal; `None` if the message has no cells.
    pub cell: Option<String>,
    /// The causal chain of the message, in hexadecimal. If the message is part of a run of several messages,
    /// the chain is that of the first one.
    pub chain: String,
    /// The message as JSON, possibly truncated. Empty if the handler had never held a thread before, because
    /// the hive records a handler's messages only after the handler has held a thread once.
    pub words: String,
    /// Milliseconds since the watchdog first saw the message.
    pub milliseconds: u64,
}

/// One bee's status.
#[derive(Clone, Debug, Serialize)]
pub struct BeeStatus {
    /// The bee.
    pub bee: BeeId,
    /// Number of messages handled by the bee.
    pub messages: u64,
    /// Number of runs of messages in the mailbox.
    pub waiting: usize,
    /// Number of cells owned by the bee.
    pub cells: usize,
    /// Average duration of a message in nanoseconds, over all timed runs; `None` if no run was timed.
    pub nanoseconds_per_message: Option<u64>,
    /// Size of the encoded state in bytes, if requested.
    pub state_bytes: Option<u64>,
    /// The senders of the bee's messages.
    pub from: Vec<PeerStatus>,
}

/// A sender of messages to a bee.
#[derive(Clone, Debug, Serialize)]
pub struct PeerStatus {
    /// The sending bee; `None` if the sender is outside or is a stateless handler. If a bee has more senders
    /// than [`PEERS_PER_BEE_MAX`](crate::limits::PEERS_PER_BEE_MAX), the last entry counts all other senders
    /// together.
    pub bee: Option<BeeId>,
    /// The sender's app; `None` if the sender is outside. Bee ids are unique only within an app.
    pub app: Option<&'static str>,
    /// Number of messages from this sender.
    pub messages: u64,
}

/// The number of messages of one type emitted by one handler.
#[derive(Clone, Debug, Serialize)]
pub struct EmitStatus {
    /// The app.
    pub app: &'static str,
    /// The handler.
    pub handler: &'static str,
    /// The message type that the handler accepts, or the period of its timer.
    pub upon: &'static str,
    /// The name of the emitted message type.
    pub message: &'static str,
    /// Number of emitted messages.
    pub count: u64,
}
