//! What a hive reports about itself, as data.

use crate::cell::{BeeId, HiveId};
use crate::view::SnapshotStatus;
use serde::Serialize;

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
