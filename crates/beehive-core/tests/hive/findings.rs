//! What a checker of a load finds wrong, and a runtime whose panics are findings, too.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The checkers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checker {
    /// Each app has handled each message once.
    Counts,
    /// The messages of one sender to one cell are handled in order.
    Order,
    /// Each sweep visits each cell once.
    Visits,
    /// Everything is done within the time that a load may take.
    Liveness,
    /// An assertion in the hive, which checks an invariant of ARCHITECTURE.md.
    Assertion,
    /// Each message in the logs is handled once or in an outbox.
    Emits,
    /// When the hive is idle, no outbox has a message, no sweep runs, and no bee moves.
    Rest,
    /// In no prefix of a log, and in the logs together, a cell has two owners.
    Owners,
    /// A bee ends when its outbox is empty.
    Ends,
    /// The id of a bee is used once.
    Ids,
    /// An adopted bee is what was frozen.
    Moves,
    /// The lane of a bee never falls behind what its receivers have handled.
    Lanes,
    /// A log forgets what cannot arrive again.
    Memory,
    /// The log can be replayed, and a hive starts on it.
    Restart,
    /// A single bee would have done the same ([`beehive_core::testing::History`]).
    History,
    /// The crash marker names the message that runs.
    Marker,
    /// After the end of a hive, no handler begins, and nothing is appended, proposed or answered.
    Ended,
}

/// Something that a checker has found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) checker: Checker,
    pub(crate) what: String,
}

impl Finding {
    pub(crate) fn new(checker: Checker, what: impl Into<String>) -> Finding {
        Finding { checker, what: what.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.checker, self.what)
    }
}

/// The first panic on each watched runtime, by its number.
static PANICS: Mutex<BTreeMap<u64, Option<String>>> = Mutex::new(BTreeMap::new());

const NAME: &str = "watched ";

/// The number of the watched runtime to which this thread belongs.
fn watched() -> Option<u64> {
    std::thread::current().name()?.strip_prefix(NAME)?.parse().ok()
}

/// A runtime whose threads keep their panics to themselves instead of printing them.
pub(crate) struct Watched {
    number: u64,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Watched {
    pub(crate) fn new(workers: usize) -> Watched {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let others = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| match watched() {
                Some(number) => {
                    let what = info.to_string().replace('\n', " ");
                    PANICS.lock().entry(number).or_default().get_or_insert(what);
                }
                None => others(info),
            }))
        });

        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name(format!("{NAME}{number}"))
            .enable_all()
            .build()
            .unwrap();
        Watched { number, runtime: Some(runtime) }
    }

    /// Runs a test on the runtime.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        test: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Finding> {
        let Some(runtime) = &self.runtime else { return Err(Finding::new(Checker::Assertion, "it is over")) };
        let done = runtime.block_on(runtime.spawn(test));
        match done {
            Ok(done) => self.panicked().map_or(Ok(done), Err),
            Err(error) => {
                let panicked = self.panicked();
                Err(panicked.unwrap_or_else(|| Finding::new(Checker::Assertion, error.to_string())))
            }
        }
    }

    /// Returns the first panic of the runtime's threads.
    fn panicked(&self) -> Option<Finding> {
        let first = PANICS.lock().get(&self.number).cloned().flatten();
        first.map(|what| Finding::new(Checker::Assertion, what))
    }
}

/// Returns the first panic on the watched runtime to which this thread belongs.
pub(crate) fn panicked_here() -> Option<Finding> {
    let first = PANICS.lock().get(&watched()?).cloned().flatten();
    first.map(|what| Finding::new(Checker::Assertion, what))
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_millis(200))
        }
        PANICS.lock().remove(&self.number);
    }
}
