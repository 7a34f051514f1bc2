//! The seams to the outside: clock, sleeping, spawning and randomness go through these traits and nowhere else, so that
//! a simulator can take their place.

use crate::time::Time;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime};

/// A future that owns what it needs.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a hive needs of the machine it runs on.
pub trait Platform: Send + Sync + 'static {
    /// The time; never runs backwards.
    fn now(&self) -> Time;
    /// Completes when `duration` has passed.
    fn sleep(&self, duration: Duration) -> BoxFuture<()>;
    /// Runs a task.
    fn spawn(&self, task: BoxFuture<()>);
    /// Whether who asks is a task, and what it spawns runs on its own thread as soon as it waits for something.
    fn spawns_here(&self) -> bool {
        false
    }
    /// Runs something that may take long on a thread of its own.
    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>);
    /// Runs something that goes on for as long as the hive, on a thread that nothing else can hold. A simulation, whose
    /// handlers are instantaneous, leaves it out.
    fn spawn_thread(&self, name: &str, task: Box<dyn FnOnce() + Send>);
    /// A number that cannot be guessed, or, in a simulation, the next of a seeded sequence.
    fn random(&self) -> u64;
    /// Threads that run tasks.
    fn workers(&self) -> usize;
}

/// The real machine, by way of a tokio runtime.
pub struct TokioPlatform {
    runtime: tokio::runtime::Handle,
    /// If it is the hive's own.
    own: Option<tokio::runtime::Runtime>,
    start: Instant,
    start_time: Time,
}

impl TokioPlatform {
    /// Uses `runtime` for tasks and timers.
    pub fn new(runtime: tokio::runtime::Handle) -> Self {
        Self::of(runtime, None)
    }

    #[expect(clippy::disallowed_methods, reason = "the real platform reads the clock")]
    fn of(runtime: tokio::runtime::Handle, own: Option<tokio::runtime::Runtime>) -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        TokioPlatform {
            runtime,
            own,
            start: Instant::now(),
            start_time: Time::from_nanoseconds(since_epoch.as_nanos() as u64),
        }
    }
}

impl TokioPlatform {
    /// Makes a runtime for a hive alone, with so many threads for tasks (one at least). It ends when the hive has stopped and
    /// its last handle is dropped.
    pub fn with_a_runtime_of_its_own(workers: usize) -> std::io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(workers.max(1)).thread_name("beehive").enable_all().build()?;
        Ok(Self::of(runtime.handle().clone(), Some(runtime)))
    }
}

impl Drop for TokioPlatform {
    fn drop(&mut self) {
        // whoever drops the last handle may be one of its tasks, and cannot wait for all of them
        if let Some(runtime) = self.own.take() {
            runtime.shutdown_background()
        }
    }
}

impl Platform for TokioPlatform {
    fn now(&self) -> Time {
        // steady by construction: the wall clock is read once
        self.start_time + self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "the real platform sleeps")]
    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        // whoever asks may be on another runtime, or on none
        let _inside = self.runtime.enter();
        Box::pin(tokio::time::sleep(duration))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.runtime.spawn(task);
    }

    fn spawns_here(&self) -> bool {
        // outside of a task, as in `block_on`, a thread looks at its own future only
        tokio::task::try_id().is_some()
            && tokio::runtime::Handle::try_current().is_ok_and(|here| here.id() == self.runtime.id())
    }

    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>) {
        self.runtime.spawn_blocking(task);
    }

    #[expect(clippy::disallowed_methods, reason = "the real platform starts threads")]
    fn spawn_thread(&self, name: &str, task: Box<dyn FnOnce() + Send>) {
        if let Err(error) = std::thread::Builder::new().name(name.to_string()).spawn(task) {
            tracing::error!(name, %error, "cannot start a thread; a handler that blocks will hold up others");
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the real platform draws numbers")]
    fn random(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        RandomState::new().build_hasher().finish()
    }

    fn workers(&self) -> usize {
        self.runtime.metrics().num_workers()
    }
}
