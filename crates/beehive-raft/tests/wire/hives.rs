//! Hives for the tests: wires with a receiver that does what a call says, and the log of all of them.

use beehive_core::HiveId;
use beehive_core::seams::BoxFuture;
use beehive_raft::cluster::transport::{Channel, Receiver, Transport, Unanswered};
use beehive_raft::cluster::wire::{PeerStatus, Wire, WireOptions};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What a call asks the receiver to do: the first byte of the request.
pub(crate) const ECHO: u8 = 0;
/// Answers after as many milliseconds as the second byte says.
pub(crate) const LATER: u8 = 1;
pub(crate) const REFUSE: u8 = 2;
pub(crate) const PANIC: u8 = 3;
/// Never answers.
pub(crate) const NEVER: u8 = 4;
/// Answers with as many MiB as the second byte says.
pub(crate) const LONG: u8 = 5;

/// A receiver that does what a call says, and remembers packets.
#[derive(Default)]
pub(crate) struct Echo {
    pub(crate) packets: Mutex<Vec<(HiveId, Channel, Vec<u8>)>>,
    pub(crate) packets_count: AtomicUsize,
    pub(crate) calls_count: AtomicUsize,
    pub(crate) serving: AtomicUsize,
    pub(crate) serving_max: AtomicUsize,
    /// Whether packets are only counted.
    pub(crate) forgets: std::sync::atomic::AtomicBool,
}

struct Serving(Arc<Echo>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.serving.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The receiver that is attached.
pub(crate) struct Attached(pub(crate) Arc<Echo>);

impl Receiver for Attached {
    fn packet(&self, from: HiveId, channel: Channel, packet: Vec<u8>) {
        self.0.packets_count.fetch_add(1, Ordering::SeqCst);
        if !self.0.forgets.load(Ordering::SeqCst) {
            self.0.packets.lock().push((from, channel, packet))
        }
    }

    fn call(&self, _: HiveId, _: Channel, request: Vec<u8>) -> BoxFuture<Option<Vec<u8>>> {
        let echo = self.0.clone();
        let serving = echo.serving.fetch_add(1, Ordering::SeqCst) + 1;
        echo.serving_max.fetch_max(serving, Ordering::SeqCst);
        echo.calls_count.fetch_add(1, Ordering::SeqCst);
        let serving = Serving(echo);
        Box::pin(async move {
            let _serving = serving;
            let second = request.get(1).copied().unwrap_or(0);
            match request.first() {
                Some(&LATER) => tokio::time::sleep(Duration::from_millis(second.into())).await,
                Some(&REFUSE) => return None,
                Some(&PANIC) => panic!("a test asked for it"),
                Some(&NEVER) => std::future::pending().await,
                Some(&LONG) => return Some(vec![7; usize::from(second) << 20]),
                _ => {}
            }
            Some(request)
        })
    }
}

/// One hive.
pub(crate) struct Hive {
    pub(crate) id: HiveId,
    pub(crate) wire: Arc<Wire>,
    pub(crate) echo: Arc<Echo>,
}

/// Options of a hive of a test's cluster.
pub(crate) fn options(cluster: &str, hive: u32) -> WireOptions {
    let address = "127.0.0.1:0".parse().unwrap();
    WireOptions::new(address, cluster, HiveId(hive))
}

impl Hive {
    pub(crate) async fn start(options: WireOptions) -> Hive {
        let id = options.hive;
        let wire = Wire::bind(options).await.expect("binds");
        let echo = Arc::new(Echo::default());
        wire.attach(Arc::new(Attached(echo.clone())));
        Hive { id, wire, echo }
    }

    pub(crate) fn address(&self) -> String {
        self.wire.address().to_string()
    }

    pub(crate) fn knows(&self, other: &Hive) {
        self.wire.set_peer(other.id, other.address())
    }

    /// Starts hives of one cluster that all know each other, and waits until they are connected.
    pub(crate) async fn cluster(cluster: &str, count: u32) -> Vec<Hive> {
        let mut hives = Vec::new();
        for id in 1..=count {
            hives.push(Hive::start(options(cluster, id)).await)
        }
        for hive in &hives {
            for other in &hives {
                hive.knows(other)
            }
        }
        for hive in &hives {
            for other in hives.iter().filter(|other| other.id != hive.id) {
                hive.connected(other.id).await
            }
        }
        hives
    }

    pub(crate) fn peer(&self, hive: HiveId) -> Option<PeerStatus> {
        self.wire.status().peers.into_iter().find(|peer| peer.hive == hive)
    }

    pub(crate) async fn connected(&self, hive: HiveId) {
        until("connected", || self.peer(hive).is_some_and(|peer| peer.connected_for.is_some())).await
    }

    pub(crate) async fn call(
        &self,
        to: &Hive,
        channel: Channel,
        request: Vec<u8>,
    ) -> Result<Vec<u8>, Unanswered> {
        self.wire.call(to.id, channel, request).await
    }
}

/// Waits until something is so, for at most ten seconds.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(10), "not in ten seconds: {what}\n{}", logged());
        tokio::time::sleep(Duration::from_millis(2)).await
    }
}

static TURNS: RwLock<()> = RwLock::new(());

/// For a test that runs beside others.
pub(crate) fn beside() -> RwLockReadGuard<'static, ()> {
    log();
    TURNS.read_recursive()
}

/// For a test that mostly waits, for longer than others: it runs beside all.
pub(crate) fn waiting() {
    log()
}

/// For a test that measures time or memory: no other test runs.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    log();
    TURNS.write()
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct ToLog;

impl Write for ToLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt().with_ansi(false).with_writer(|| ToLog).init();
    })
}

/// The log of all hives so far.
pub(crate) fn logged() -> String {
    String::from_utf8_lossy(&LOG.lock()).into_owned()
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED_MAX: AtomicUsize = AtomicUsize::new(0);

fn grown(bytes: usize) {
    let allocated = ALLOCATED.fetch_add(bytes, Ordering::Relaxed) + bytes;
    ALLOCATED_MAX.fetch_max(allocated, Ordering::Relaxed);
}

// SAFETY: everything is passed on to the system's allocator; the counters do not touch memory that it returns.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The memory that a test takes beyond what was in use when it began to measure. Only for tests that run [`alone`].
pub(crate) struct Memory(usize);

impl Memory {
    pub(crate) fn measure() -> Memory {
        let allocated = ALLOCATED.load(Ordering::Relaxed);
        ALLOCATED_MAX.store(allocated, Ordering::Relaxed);
        Memory(allocated)
    }

    /// The most that was in use at once, in bytes.
    pub(crate) fn most(&self) -> usize {
        ALLOCATED_MAX.load(Ordering::Relaxed).saturating_sub(self.0)
    }
}
