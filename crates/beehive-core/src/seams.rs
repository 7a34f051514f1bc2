//! The interface to the machine: clock, timers, tasks, threads and randomness. The core uses them only
//! through these traits, so that a simulator can replace them.

use crate::time::Time;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime};

/// A boxed future that owns its data.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The services that a hive needs from the machine on which it runs.
pub trait Platform: Send + Sync + 'static {
    /// Returns the current time, which never runs backwards.
    fn now(&self) -> Time;
    /// Returns a future that completes after `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<()>;
    /// Spawns an asynchronous task.
    fn spawn(&self, task: BoxFuture<()>);
    /// Returns whether the caller is a task of this platform's runtime. If so, a task spawned by the caller
    /// starts on the same thread at the caller's next `.await`.
    fn spawns_here(&self) -> bool {
        false
    }
    /// Runs a closure that may block, on a thread for blocking work.
    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>);
    /// Runs a closure that lives as long as the hive, on a dedicated thread. A simulation, in which handlers
    /// take no time, may ignore the call.
    fn spawn_thread(&self, name: &str, task: Box<dyn FnOnce() + Send>);
    /// Returns an unpredictable number or, in a simulation, the next number of a seeded sequence.
    fn random(&self) -> u64;
    /// Returns the number of threads that run tasks.
    fn workers(&self) -> usize;
}

/// The real machine, through a tokio runtime.
pub struct TokioPlatform {
    runtime: tokio::runtime::Handle,
    /// The runtime itself, if this platform owns it.
    own: Option<tokio::runtime::Runtime>,
    start: Instant,
    start_time: Time,
}

impl std::fmt::Debug for TokioPlatform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokioPlatform").field("workers", &self.workers()).finish_non_exhaustive()
    }
}

impl TokioPlatform {
    /// Returns a platform that uses `runtime` for tasks and timers.
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
    /// Creates a runtime for one hive, with `workers` threads for tasks (at least one). The runtime shuts
    /// down when the hive has stopped and its last handle is dropped.
    pub fn with_a_runtime_of_its_own(workers: usize) -> std::io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(workers.max(1)).thread_name("beehive").enable_all().build()?;
        Ok(Self::of(runtime.handle().clone(), Some(runtime)))
    }
}

impl Drop for TokioPlatform {
    fn drop(&mut self) {
        // The last handle may be dropped by one of the runtime's own tasks, which must not wait for all tasks
        // to end, because it is one of them.
        if let Some(runtime) = self.own.take() {
            runtime.shutdown_background()
        }
    }
}

impl Platform for TokioPlatform {
    #[expect(clippy::disallowed_methods, reason = "the real platform reads the clock")]
    fn now(&self) -> Time {
        // This is monotonic, because the wall clock is read only once, at the start.
        self.start_time + self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "the real platform sleeps")]
    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        // Enter the runtime, because the caller may be on another runtime or on none.
        let _inside = self.runtime.enter();
        Box::pin(tokio::time::sleep(duration))
    }

    #[expect(clippy::disallowed_methods, reason = "the real platform starts tasks")]
    fn spawn(&self, task: BoxFuture<()>) {
        self.runtime.spawn(task);
    }

    fn spawns_here(&self) -> bool {
        // Outside a task, for example in `block_on`, the thread polls only its own future, not spawned tasks.
        tokio::task::try_id().is_some()
            && tokio::runtime::Handle::try_current().is_ok_and(|here| here.id() == self.runtime.id())
    }

    #[expect(clippy::disallowed_methods, reason = "the real platform starts threads")]
    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>) {
        self.runtime.spawn_blocking(task);
    }

    #[expect(clippy::disallowed_methods, reason = "the real platform starts threads")]
    fn spawn_thread(&self, name: &str, task: Box<dyn FnOnce() + Send>) {
        if let Err(error) = std::thread::Builder::new().name(name.to_string()).spawn(task) {
            tracing::error!(name, %error, "cannot start a thread; a blocking handler will delay others");
        }
    }

    #[expect(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "the real platform draws numbers"
    )]
    fn random(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        RandomState::new().build_hasher().finish()
    }

    fn workers(&self) -> usize {
        self.runtime.metrics().num_workers()
    }
}
