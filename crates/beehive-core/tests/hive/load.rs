//! Test support: a hive on a number of workers, with or without a misbehaving journal.

use beehive_core::journal::{Journal, LogState};
use beehive_core::seams::{BoxFuture, Platform, TokioPlatform};
use beehive_core::testing::maps::{Delivered, covers, deliver, describe, record};
use beehive_core::testing::{TestJournal, move_one};
use beehive_core::{Builder, Handlers, Handles, Hive, Io, Message, Time, limits};
use parking_lot::{RwLock, RwLockWriteGuard};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Ordinary tests share this lock. A test that measures time holds it exclusively.
static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
    /// The journals of the test that runs on this thread.
    static JOURNALS: RefCell<Vec<Arc<TestJournal>>> = const { RefCell::new(Vec::new()) };
}

/// Prevents other tests from running until it is dropped.
pub(crate) struct Alone {
    _machine: RwLockWriteGuard<'static, ()>,
}

pub(crate) fn alone() -> Alone {
    let machine = MACHINE.write();
    IS_ALONE.set(true);
    Alone { _machine: machine }
}

impl Drop for Alone {
    fn drop(&mut self) {
        IS_ALONE.set(false)
    }
}

/// Runs a test on its own runtime.
pub(crate) fn on_workers<T>(workers: usize, test: impl Future<Output = T>) -> T {
    let _beside_others = (!IS_ALONE.get()).then(|| MACHINE.read_recursive());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
    let result = runtime.block_on(test);
    runtime.shutdown_timeout(Duration::from_millis(200));
    // each journal has a thread, and hundreds of threads would slow down later tests
    JOURNALS.take().iter().for_each(|journal| journal.stop());
    result
}

/// Measures the wake-up delay of the machine itself, with a thread that sleeps in a loop. A test that asserts
/// an upper bound on a delay adds this delay to the bound, because other processes may use the same machine.
pub(crate) struct Lateness {
    is_over: Arc<AtomicBool>,
    worst_nanos: Arc<AtomicU64>,
}

impl Lateness {
    pub(crate) fn measure() -> Lateness {
        const NAP: Duration = Duration::from_millis(1);
        let (is_over, worst_nanos) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, shown) = (is_over.clone(), worst_nanos.clone());
        std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(NAP);
                let late = began.elapsed().saturating_sub(NAP);
                shown.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
            }
        });

        Lateness { is_over, worst_nanos }
    }

    /// The maximum delay so far.
    pub(crate) fn worst(&self) -> Duration {
        Duration::from_nanos(self.worst_nanos.load(Ordering::Relaxed))
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed)
    }
}

/// Where a hive keeps its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// Nowhere.
    Memory,
    /// In a journal that commits late, refuses one entry in fifty, and is sometimes deposed.
    Journal,
    /// In several such journals, between which the bees move all the time.
    Journals,
}

/// All places where a hive may keep its records, for tests that must pass with each of them.
pub(crate) const EVERYWHERE: [On; 3] = [On::Memory, On::Journal, On::Journals];

/// Returns the number of journals of [`On::Journals`]: the value of `BEEHIVE_JOURNALS`, or two by default.
pub(crate) fn journals() -> u64 {
    let set = std::env::var("BEEHIVE_JOURNALS").ok();
    set.map_or(2, |count| count.parse().expect("BEEHIVE_JOURNALS is a number"))
}

/// Starts a journal that runs until the test ends.
fn journal(seed: u64) -> Arc<TestJournal> {
    let journal = TestJournal::start(seed, 50, 0);
    journal.depose(4);
    JOURNALS.with_borrow_mut(|all| all.push(journal.clone()));
    journal
}

/// Starts a hive. Its journals run until the test ends.
pub(crate) fn start(builder: Builder, on: On) -> (Hive, Option<Arc<TestJournal>>) {
    match on {
        On::Memory => (builder.start().unwrap(), None),
        On::Journal => {
            let journal = journal(0x1234_5678_9abc);
            (builder.journal(journal.clone(), LogState::default()).start().unwrap(), Some(journal))
        }
        On::Journals => {
            let log =
                |number| (journal(0x1234_5678_9abc + 2 * number) as Arc<dyn Journal>, LogState::default());
            let hive = builder.journals((0..journals()).map(log)).start().unwrap();
            tokio::spawn(move_bees(hive.clone()));
            (hive, None)
        }
    }
}

/// Moves one bee after the other, until the hive stops.
async fn move_bees(hive: Hive) {
    let moves = async {
        for chance in 0.. {
            move_one(&hive, chance).await;
            tokio::time::sleep(Duration::from_micros(100)).await
        }
    };
    tokio::select! {
        biased;
        () = hive.stopping() => {}
        () = moves => {}
    }
}

/// Waits until `done` returns true; panics after `limit`.
pub(crate) async fn eventually(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(5)).await
    }
}

/// Unwinds without calling the panic hook, because the output of thousands of expected panics would hide an
/// unexpected one.
pub(crate) fn unheard(text: &str) -> ! {
    std::panic::resume_unwind(Box::new(text.to_string()))
}

/// A small deterministic random number generator.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// The oracle: checks that a handler touches only what its derived map names (before fusion), and that the
/// message is handled. Returns how many of the mapped cells the handler needs: the oracle reports an error if
/// one of those cells is missing from the map.
pub(crate) fn cells_needed<A: Handlers + Handles<M>, M: Message>(app: &mut A, message: &M) -> usize {
    let mapped = describe::<A, M>(message);
    let touched = record(app, message);
    assert!(covers(&mapped, &touched), "{}: mapped {:?}, touched {touched:?}", M::NAME, mapped.words);

    let delivered = deliver(app, message);
    let panicked = matches!(delivered, Delivered::Panicked(_) | Delivered::Unmapped(_));
    assert!(!panicked, "{}: {delivered:?}", M::NAME);

    let without = |lost: usize| {
        let mut seeded = mapped.clone();
        seeded.words.remove(lost);
        seeded
    };

    (0..mapped.words.len()).filter(|lost| !covers(&without(*lost), &touched)).count()
}

/// Waits until nothing is in flight: all credits of the hive, and the `limit` credits of each IO bee, are
/// free.
pub(crate) async fn credits_are_back(hive: &Hive, io: &[&Io], limit: u32) {
    eventually("credits", Duration::from_secs(60), || {
        hive.status().credits_free == limits::CREDITS_PER_IO_BEE && io.iter().all(|io| io.credits() == limit)
    })
    .await
}

/// A platform whose clock is ahead of real time.
pub(crate) struct Ahead(TokioPlatform, Duration);

impl Ahead {
    pub(crate) fn by(ahead: Duration) -> Arc<Ahead> {
        Arc::new(Ahead(TokioPlatform::new(tokio::runtime::Handle::current()), ahead))
    }
}

impl Platform for Ahead {
    fn now(&self) -> Time {
        self.0.now() + self.1
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        self.0.sleep(duration)
    }
    fn spawn(&self, task: BoxFuture<()>) {
        self.0.spawn(task)
    }
    fn spawns_here(&self) -> bool {
        self.0.spawns_here()
    }
    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>) {
        self.0.spawn_blocking(task)
    }
    fn spawn_thread(&self, name: &str, task: Box<dyn FnOnce() + Send>) {
        self.0.spawn_thread(name, task)
    }
    fn random(&self) -> u64 {
        self.0.random()
    }
    fn workers(&self) -> usize {
        self.0.workers()
    }
}

/// Returns the state in which a process that was killed from outside has left its log. The crash marker in it accuses no
/// message for the second time: the next hive would set that message aside.
pub(crate) fn killed(log: &[Vec<u8>]) -> LogState {
    spared(LogState::replay(log.iter().map(Vec::as_slice)).unwrap())
}

/// Returns the state with a crash marker that accuses no message for the second time.
pub(crate) fn spared(mut state: LogState) -> LogState {
    if let Some(marker) = &mut state.marker {
        marker.running.retain(|running| !marker.accused.contains(running))
    }
    state
}
