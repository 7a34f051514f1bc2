//! The data that a hive reports about itself.

use crate::cell::{BeeId, HiveId};
use crate::view::ViewStatus;
use serde::Serialize;

/// The status of a hive.
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
    /// Which handlers emitted which messages.
    pub emits: Vec<EmitStatus>,
    /// Free credits of the hive itself, for requests and single messages from outside.
    pub credits_free: u32,
    /// Number of timers that have not fired.
    pub timers: usize,
    /// Number of ticks that were skipped because the previous tick was still in flight.
    pub ticks_collapsed: u64,
    /// Number of messages and answers dropped since the start because their IO bee did not read.
    pub mail_shed: u64,
    /// Number of dead letters since the start.
    pub dead_letters: u64,
    /// Number of dead letters that are kept, and can be listed and resent.
    pub dead_letters_kept: usize,
    /// Number of dead letters that were evicted to make room for later ones.
    pub dead_letters_dropped: u64,
    /// Size of the dedup tables of the bees that are idle now: lanes, and runs of numbers above their
    /// floors.
    pub remembered: usize,
    /// Number of message chains that were cut off as cycles.
    pub cycles: u64,
    /// Number of times that bees which waited behind a handler that held its thread were moved to other
    /// threads.
    pub relieved: u64,
    /// Messages that currently take too long.
    pub stuck: Vec<StuckStatus>,
}

/// The status of one app.
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
    /// Number of its bees on this hive.
    pub bees: usize,
    /// Number of bees created so far.
    pub bees_created: u64,
    /// Number of bees that were merged into another.
    pub bees_merged: u64,
    /// Number of bees that were retired because they owned only empty cells.
    pub bees_retired: u64,
    /// Its handlers, in the order of the source.
    pub handlers: Vec<HandlerStatus>,
    /// State of the app's views; `None` if nothing reads them.
    pub views: Option<ViewStatus>,
    /// The currently idle bees that handled the most messages.
    pub busiest: Vec<BeeStatus>,
}

/// The status of one handler.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerStatus {
    /// Its name.
    pub name: &'static str,
    /// The message type that it handles, or the period of its timer.
    pub message: &'static str,
    /// The answer type; empty if the handler cannot answer.
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
    /// Messages on which the handler panicked or broke a rule.
    pub panics: u64,
    /// Messages that it answered.
    pub answered: u64,
    /// Runs of its messages that were blocked until their cells had one owner. A high number shows which
    /// handler merges bees.
    pub waited: u64,
    /// Messages that took longer than [`Builder::stuck_after`](crate::Builder::stuck_after).
    pub stuck: u64,
}

/// A message whose handler runs for too long. It occupies a thread, and blocks its cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StuckStatus {
    /// The app.
    pub app: &'static str,
    /// The handler.
    pub handler: &'static str,
    /// The message type that the handler handles, or the period of its timer.
    pub message: &'static str,
    /// The first mapped cell, in hexadecimal; `None` if the message has no cells.
    pub cell: Option<String>,
    /// The causal chain of the message, in hexadecimal. If several messages run together, this is the chain
    /// of the first one.
    pub chain: String,
    /// The message as JSON, possibly truncated. Empty if no earlier message of the handler has held its
    /// thread, because the hive records a handler's messages only from that moment on.
    pub words: String,
    /// Milliseconds since the watchdog first saw the message.
    pub milliseconds: u64,
}

/// The status of one bee.
#[derive(Clone, Debug, Serialize)]
pub struct BeeStatus {
    /// The bee.
    pub bee: BeeId,
    /// Messages it handled.
    pub messages: u64,
    /// Number of runs of messages in the mailbox.
    pub waiting: usize,
    /// Cells that it owns.
    pub cells: usize,
    /// Average duration of a message in nanoseconds, over the runs that were timed; `None` if none was.
    pub nanoseconds_per_message: Option<u64>,
    /// Bytes of the encoded state, if the caller asked for it.
    pub state_bytes: Option<u64>,
    /// The senders of its messages.
    pub from: Vec<PeerStatus>,
}

/// A sender of messages to a bee.
#[derive(Clone, Debug, Serialize)]
pub struct PeerStatus {
    /// The sending bee; `None` if the sender is outside or a stateless handler. If a bee has more senders
    /// than [`PEERS_PER_BEE_MAX`](crate::limits::PEERS_PER_BEE_MAX), the last entry counts all further ones
    /// together.
    pub bee: Option<BeeId>,
    /// The sender's app, within which bee ids are unique; `None` if the sender is outside.
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
    /// The message type that the handler handles, or the period of its timer.
    pub upon: &'static str,
    /// The name of the emitted message type.
    pub message: &'static str,
    /// Number of emitted messages.
    pub count: u64,
}
