//! `Trace`: what happened in a simulated cluster, one line for each event.

use crate::cell::HiveId;
use crate::hive::message::render;
use crate::key::CellHasher;
use crate::testing::VirtualPlatform;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{Debug, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

/// Default number of the newest events that a cluster keeps.
pub(super) const EVENTS_KEPT: usize = 10_000;
/// Number of distinct events that a cluster counts.
pub(super) const DISTINCT_MAX: usize = 1 << 20;
/// Number of messages from outside whose short numbers are remembered.
const CHAINS_MAX: usize = 1 << 16;

/// What kind of event a line is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// A hive starts, crashes or is disturbed, by the test or by [`Faults`](super::Faults).
    Fault,
    /// The test asks something.
    Ask,
    /// The test gets an answer.
    Answer,
    /// A message leaves a sender.
    Emit,
    /// A handler has handled a message.
    Handle,
    /// A handler has failed.
    Fail,
    /// A message ends without its handler.
    Skip,
    /// A bee's state was built from its log.
    Restore,
    /// An entry is appended to a log.
    Append,
    /// A log has committed entries.
    Commit,
    /// A log has refused an entry.
    Refuse,
    /// The registry has decided.
    Decide,
    /// A packet leaves a hive.
    Packet,
    /// A packet arrives at a hive.
    Arrive,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Fault => "fault",
            Kind::Ask => "ask",
            Kind::Answer => "answer",
            Kind::Emit => "emit",
            Kind::Handle => "handle",
            Kind::Fail => "fail",
            Kind::Skip => "skip",
            Kind::Restore => "restore",
            Kind::Append => "append",
            Kind::Commit => "commit",
            Kind::Refuse => "refuse",
            Kind::Decide => "decide",
            Kind::Packet => "packet",
            Kind::Arrive => "arrive",
        }
    }

    /// Whether the event shows what the apps or the faults did, and not only how a hive does it.
    fn is_main(self) -> bool {
        matches!(self, Kind::Fault | Kind::Ask | Kind::Answer | Kind::Handle | Kind::Fail | Kind::Refuse)
    }
}

/// An event of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Event {
    /// Time since the cluster started.
    at: Duration,
    hive: Option<HiveId>,
    kind: Kind,
    /// The message from outside that caused it, counted from 1.
    chain: Option<u64>,
    text: String,
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Event { at, hive, kind, chain, text } = self;
        let hive = hive.map(|hive| hive.to_string()).unwrap_or_default();
        let chain = chain.map(|chain| format!("#{chain}")).unwrap_or_default();
        let (seconds, nanoseconds) = (at.as_secs(), at.subsec_nanos());
        write!(f, "{seconds:>4}.{nanoseconds:09} {hive:<7}{:<8}{chain:<5} {text}", kind.word())
    }
}

/// What happened in a simulated cluster: one line for each event, oldest first. [`Cluster::trace`](super::Cluster::trace)
/// returns it.
///
/// A line contains the virtual time in seconds since the cluster started, the hive, the kind of event, the number of the
/// message from outside that caused it (such as `#12`), and what happened. Two runs with the same seed have the same trace,
/// also in different processes. Only the newest events are kept
/// ([`ClusterSetup::keep_events`](super::ClusterSetup::keep_events)), but the [digest](Trace::digest) is one of all events.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    kept: Vec<Event>,
    events: u64,
    digest: u64,
}

impl Trace {
    /// Returns a number that differs, in all likelihood, if any event since the start of the cluster differs.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the number of events since the start of the cluster, including those that are no longer kept.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Checks whether all events are kept.
    pub(super) fn is_whole(&self) -> bool {
        self.kept.len() as u64 == self.events
    }

    /// Returns the lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.kept.iter().map(Event::to_string)
    }

    /// Keeps only what concerns `what`: the lines that contain this text, all other lines about the same messages from outside,
    /// and all faults. The text may be a cell (`accounts[4]`), a bee (`bee 7`), a handler (`bank.withdraw`), a message from
    /// outside (`#12`), or any other part of a line. It must end where a word or a number ends: `bee 7` is not in `bee 70`.
    pub fn about(mut self, what: &str) -> Trace {
        let is_end = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        let mentions = |event: &Event| {
            let line = event.to_string();
            line.match_indices(what).any(|(at, found)| is_end(&line[at + found.len()..]))
        };
        let chains: BTreeSet<u64> =
            self.kept.iter().filter(|event| mentions(event)).filter_map(|event| event.chain).collect();
        let is_same = |event: &Event| event.chain.is_some_and(|chain| chains.contains(&chain));
        self.kept.retain(|event| event.kind == Kind::Fault || is_same(event) || mentions(event));
        self
    }

    /// Keeps only faults, requests, answers, and what the handlers did. Leaves out how the hives did it: packets, logs and
    /// registry.
    pub fn of_apps(mut self) -> Trace {
        self.kept.retain(|event| event.kind.is_main());
        self
    }

    /// Keeps only the newest `count` lines.
    pub fn newest(mut self, count: usize) -> Trace {
        self.kept.drain(..self.kept.len().saturating_sub(count));
        self
    }
}

impl Display for Trace {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.kept.iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}

impl Debug for Trace {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("events", &self.events).field("digest", &self.digest).finish()
    }
}

/// The trace that a cluster writes.
pub(crate) struct Log {
    clock: VirtualPlatform,
    state: Mutex<State>,
}

struct State {
    kept: VecDeque<Event>,
    kept_max: usize,
    events: u64,
    digest: CellHasher,
    /// The digests of the events, without their times.
    distinct: BTreeSet<u64>,
    /// The short numbers of causal chains.
    chains: BTreeMap<u64, u64>,
    chains_begun: u64,
    /// The first message that became a dead letter, as text, and its chain.
    failure: Option<(String, u64)>,
}

impl Log {
    pub(super) fn new(clock: VirtualPlatform, kept_max: usize) -> Arc<Log> {
        let state = State {
            kept: VecDeque::new(),
            kept_max,
            events: 0,
            digest: CellHasher::new(0),
            distinct: BTreeSet::new(),
            chains: BTreeMap::new(),
            chains_begun: 0,
            failure: None,
        };
        Arc::new(Log { clock, state: Mutex::new(state) })
    }

    /// Adds an event. `chain` is the number of the causal chain to which it belongs.
    pub(crate) fn add(&self, kind: Kind, hive: Option<HiveId>, chain: Option<u64>, text: impl Display) {
        let at = self.clock.elapsed();
        let mut state = self.state.lock();
        let chain = chain.map(|chain| state.short(chain));
        let event = Event { at, hive, kind, chain, text: text.to_string() };
        state.add(event)
    }

    /// Remembers a message that became a dead letter.
    pub(crate) fn fails(&self, what: String, chain: u64) {
        let mut state = self.state.lock();
        let chain = state.short(chain);
        state.failure.get_or_insert((what, chain));
    }

    /// Returns the first message that became a dead letter, and forgets it.
    pub(super) fn take_failure(&self) -> Option<(String, u64)> {
        self.state.lock().failure.take()
    }

    pub(super) fn trace(&self) -> Trace {
        let state = self.state.lock();
        Trace {
            kept: state.kept.iter().cloned().collect(),
            events: state.events,
            digest: state.digest.finish(),
        }
    }

    /// Returns the digests of the distinct events so far.
    pub(super) fn distinct(&self) -> BTreeSet<u64> {
        self.state.lock().distinct.clone()
    }
}

impl State {
    /// Returns the short number of a causal chain.
    fn short(&mut self, chain: u64) -> u64 {
        if self.chains.len() >= CHAINS_MAX {
            self.chains.clear()
        }
        let begun = &mut self.chains_begun;
        *self.chains.entry(chain).or_insert_with(|| {
            *begun += 1;
            *begun
        })
    }

    fn add(&mut self, event: Event) {
        self.digest.bytes(event.to_string().as_bytes());
        if event.kind.is_main() && self.distinct.len() < DISTINCT_MAX {
            let mut digest = CellHasher::new(0);
            digest.bytes(format!("{:?} {:?} {}", event.kind, event.hive, event.text).as_bytes());
            self.distinct.insert(digest.finish());
        }
        self.events += 1;
        self.kept.push_back(event);
        if self.kept.len() > self.kept_max {
            self.kept.pop_front();
        }
    }
}

/// The beginning of the debug output of a value.
pub(crate) struct Brief<'a, T>(pub(crate) &'a T);

/// Longest text of a [`Brief`], in bytes.
const BRIEF_BYTES_MAX: usize = 160;

impl<T: Debug> Display for Brief<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&render::bounded_debug(self.0, BRIEF_BYTES_MAX))
    }
}
