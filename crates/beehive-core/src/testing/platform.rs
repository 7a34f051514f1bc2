//! A single-threaded platform whose time stands still until a test advances it, so that every run of a test is the
//! same.

use crate::limits;
use crate::seams::{BoxFuture, Platform};
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The time at which every test starts: 9 September 2001, 01:46:40 UTC.
const BEGINNING: Time = Time::from_nanoseconds(1_000_000_000_000_000_000);

/// A small deterministic random number generator.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        // The splitmix64 algorithm.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// The reason why the platform cannot complete a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stuck {
    /// Jobs keep making more jobs ready.
    Busy {
        /// Number of jobs that ran while time stood still.
        steps: usize,
    },
    /// The future is pending, and nothing is left to wake it.
    Deadlock,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stuck::Busy { steps } => write!(
                f,
                "the hive does not become idle: {steps} steps without time advancing; does a message cause itself?"
            ),
            Stuck::Deadlock => {
                write!(f, "deadlock: the future is pending, but no task is ready and no timer is set")
            }
        }
    }
}

enum Job {
    Task(Arc<Task>),
    Once(Owner, Box<dyn FnOnce() + Send>),
}

impl Job {
    fn owner(&self) -> Owner {
        match self {
            Job::Task(task) => task.owner,
            Job::Once(owner, _) => *owner,
        }
    }
}

/// The simulated process to which a job belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Owner(pub(crate) u32);

/// The owner of the jobs that belong to no process, such as the network. It is never paused.
pub(crate) const NOBODY: Owner = Owner(u32::MAX);

struct Task {
    number: u64,
    owner: Owner,
    future: Mutex<Option<BoxFuture<()>>>,
    queued: AtomicBool,
    machine: Arc<Machine>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            let machine = self.machine.clone();
            machine.ready.lock().push_back(Job::Task(self))
        }
    }
}

struct Machine {
    now: AtomicU64,
    ready: Mutex<VecDeque<Job>>,
    /// The processes that are paused, each with its jobs that have become ready meanwhile.
    paused: Mutex<BTreeMap<Owner, Vec<Job>>>,
    /// All spawned tasks that have not ended. [`VirtualPlatform::clear`] needs them, because pending tasks may keep
    /// one another alive in reference cycles.
    tasks: Mutex<BTreeMap<u64, Arc<Task>>>,
    spawned: AtomicU64,
    sleepers: Mutex<BTreeMap<(Time, u64), Waker>>,
    random: Mutex<Chance>,
    /// Source of the random order of ready jobs. If it is `None`, jobs run in the order in which they became ready.
    order: Option<Mutex<Chance>>,
}

impl Machine {
    fn now(&self) -> Time {
        Time::from_nanoseconds(self.now.load(Ordering::Acquire))
    }
}

struct Sleep {
    machine: Arc<Machine>,
    until: (Time, u64),
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.machine.now() >= self.until.0 {
            return Poll::Ready(());
        }
        self.machine.sleepers.lock().insert(self.until, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.machine.sleepers.lock().remove(&self.until);
    }
}

/// A [`Platform`] for tests. It runs in the caller's thread, its time advances only on request, and its randomness is
/// derived from a seed.
///
/// Nothing runs by itself. A [`Kit`](crate::testing::Kit) drives the platform.
#[derive(Clone)]
pub struct VirtualPlatform(Arc<Machine>);

impl std::fmt::Debug for VirtualPlatform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualPlatform").field("now", &self.0.now()).finish_non_exhaustive()
    }
}

impl VirtualPlatform {
    /// Returns a platform whose [`Platform::random`] is derived from `seed`. Ready jobs run in the order in
    /// which they became ready.
    pub fn new(seed: u64) -> Self {
        Self::with_order(seed, None)
    }

    /// Same as [`VirtualPlatform::new`], but ready jobs run in a random order derived from the seed `order`.
    pub fn shuffled(seed: u64, order: u64) -> Self {
        Self::with_order(seed, Some(order))
    }

    fn with_order(seed: u64, order: Option<u64>) -> Self {
        VirtualPlatform(Arc::new(Machine {
            now: AtomicU64::new(BEGINNING.as_nanoseconds()),
            ready: Mutex::default(),
            paused: Mutex::default(),
            tasks: Mutex::default(),
            spawned: AtomicU64::new(0),
            sleepers: Mutex::default(),
            random: Mutex::new(Chance::new(seed)),
            order: order.map(|seed| Mutex::new(Chance::new(seed))),
        }))
    }

    /// Runs one ready job. Returns whether there was one.
    fn step(&self) -> bool {
        let job = {
            let mut ready = self.0.ready.lock();
            let at = self.0.order.as_ref().map_or(0, |order| order.lock().below(ready.len()));
            ready.remove(at)
        };
        let Some(job) = job else { return false };
        if let Some(held) = self.0.paused.lock().get_mut(&job.owner()) {
            held.push(job);
            return true;
        }

        match job {
            Job::Once(_, run) => run(),
            Job::Task(task) => {
                task.queued.store(false, Ordering::Release);
                let Some(mut future) = task.future.lock().take() else { return true };
                let waker = Waker::from(task.clone());
                match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Pending => *task.future.lock() = Some(future),
                    Poll::Ready(()) => drop(self.0.tasks.lock().remove(&task.number)),
                }
            }
        }

        true
    }

    /// Runs ready jobs until none is left. Time stands still.
    ///
    /// # Panics
    ///
    /// Panics after [`limits::STEPS_AT_ONE_MOMENT_MAX`] steps, because the jobs then most likely form a
    /// cycle.
    #[track_caller]
    pub fn run_until_idle(&self) {
        if let Err(stuck) = self.try_run_until_idle() {
            panic!("{stuck}")
        }
    }

    /// Same as [`VirtualPlatform::run_until_idle`], with an error instead of a panic.
    pub(crate) fn try_run_until_idle(&self) -> Result<(), Stuck> {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            if steps >= limits::STEPS_AT_ONE_MOMENT_MAX {
                return Err(Stuck::Busy { steps });
            }
        }

        Ok(())
    }

    /// Advances time by `duration`. Jobs that become due in that time run in order, each at its own time.
    ///
    /// # Panics
    ///
    /// See [`VirtualPlatform::run_until_idle`].
    #[track_caller]
    pub fn advance(&self, duration: Duration) {
        if let Err(stuck) = self.try_advance(duration) {
            panic!("{stuck}")
        }
    }

    /// Same as [`VirtualPlatform::advance`], with an error instead of a panic.
    pub(crate) fn try_advance(&self, duration: Duration) -> Result<(), Stuck> {
        let end = self.0.now() + duration;
        self.try_run_until_idle()?;
        while self.move_to_next(end) {
            self.try_run_until_idle()?
        }

        self.0.now.fetch_max(end.as_nanoseconds(), Ordering::AcqRel);
        self.try_run_until_idle()
    }

    /// Runs no job of a process until [`VirtualPlatform::resume`].
    pub(crate) fn pause(&self, owner: Owner) {
        self.0.paused.lock().entry(owner).or_default();
    }

    /// Continues a process that was paused. Its jobs that have become ready meanwhile are ready now.
    pub(crate) fn resume(&self, owner: Owner) {
        let held = self.0.paused.lock().remove(&owner);
        self.0.ready.lock().extend(held.into_iter().flatten())
    }

    /// Checks whether a process is paused.
    pub(crate) fn is_paused(&self, owner: Owner) -> bool {
        self.0.paused.lock().contains_key(&owner)
    }

    /// Returns the time since the beginning of the test.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.now() - BEGINNING
    }

    /// Advances time to the next wake-up, unless that is after `end`, and wakes the sleeper. Returns whether it did.
    fn move_to_next(&self, end: Time) -> bool {
        let mut sleepers = self.0.sleepers.lock();
        let Some(first) = sleepers.first_entry() else { return false };
        let at = first.key().0;
        if at > end {
            return false;
        }

        let waker = first.remove();
        drop(sleepers);
        self.0.now.fetch_max(at.as_nanoseconds(), Ordering::AcqRel);
        waker.wake();
        true
    }

    /// Runs `future` to completion, together with everything that is ready. When nothing is ready, time
    /// advances to the next wake-up.
    ///
    /// # Panics
    ///
    /// Panics if the future is waiting for something that can never happen, or after
    /// [`limits::STEPS_AT_ONE_MOMENT_MAX`] steps without time advancing.
    #[track_caller]
    pub fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        match self.try_drive(future) {
            Ok(value) => value,
            Err(stuck) => panic!("{stuck}"),
        }
    }

    /// Same as [`VirtualPlatform::drive`], with an error instead of a panic.
    pub(crate) fn try_drive<T>(&self, future: impl Future<Output = T>) -> Result<T, Stuck> {
        // The test may be running inside a tokio runtime, whose cooperative budget would not be refilled in this loop.
        let future = pin!(tokio::task::coop::unconstrained(future));
        match self.try_drive_until(future, None)? {
            Some(value) => Ok(value),
            None => Err(Stuck::Deadlock),
        }
    }

    /// Same as [`VirtualPlatform::try_drive`], but stops at `end`, and then returns `None`.
    pub(crate) fn try_drive_until<T>(
        &self,
        mut future: Pin<&mut impl Future<Output = T>>,
        end: Option<Time>,
    ) -> Result<Option<T>, Stuck> {
        let mut steps = 0;

        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return Ok(Some(value));
            }

            if self.step() {
                steps += 1;
                if steps >= limits::STEPS_AT_ONE_MOMENT_MAX {
                    return Err(Stuck::Busy { steps });
                }
                continue;
            }

            steps = 0;
            if self.move_to_next(end.unwrap_or(Time::from_nanoseconds(u64::MAX))) {
                continue;
            }
            let Some(end) = end else { return Err(Stuck::Deadlock) };
            self.0.now.fetch_max(end.as_nanoseconds(), Ordering::AcqRel);
            return Ok(None);
        }
    }

    /// Returns a future that yields to the other ready jobs `turns` times before it completes.
    pub(crate) fn let_others_go_first(&self, turns: usize) -> BoxFuture<()> {
        let mut left = turns;
        Box::pin(std::future::poll_fn(move |context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    /// Returns the number of tasks that have been spawned and have not ended.
    pub fn tasks(&self) -> usize {
        self.0.tasks.lock().len()
    }

    /// Drops everything that was spawned. Otherwise pending tasks could keep one another alive in reference
    /// cycles.
    pub fn clear(&self) {
        let (ready, tasks) =
            (std::mem::take(&mut *self.0.ready.lock()), std::mem::take(&mut *self.0.tasks.lock()));
        let paused = std::mem::take(&mut *self.0.paused.lock());
        for task in tasks.values() {
            let future = task.future.lock().take();
            drop(future)
        }

        drop((ready, paused));
        let sleepers = std::mem::take(&mut *self.0.sleepers.lock());
        drop(sleepers)
    }
}

impl Platform for VirtualPlatform {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        let number = self.0.spawned.fetch_add(1, Ordering::Relaxed);
        Box::pin(Sleep { machine: self.0.clone(), until: (self.0.now() + duration, number) })
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.spawn_as(NOBODY, task)
    }

    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>) {
        self.spawn_blocking_as(NOBODY, task)
    }

    /// Does nothing. Handlers take no time on this platform, so no watchdog is needed.
    fn spawn_thread(&self, _: &str, _: Box<dyn FnOnce() + Send>) {}

    fn random(&self) -> u64 {
        self.0.random.lock().next()
    }

    fn workers(&self) -> usize {
        1
    }
}

impl VirtualPlatform {
    /// Spawns a task of a process.
    pub(crate) fn spawn_as(&self, owner: Owner, task: BoxFuture<()>) {
        let number = self.0.spawned.fetch_add(1, Ordering::Relaxed);
        let task = Arc::new(Task {
            number,
            owner,
            future: Mutex::new(Some(Box::pin(tokio::task::coop::unconstrained(task)))),
            queued: AtomicBool::new(false),
            machine: self.0.clone(),
        });

        self.0.tasks.lock().insert(number, task.clone());
        task.wake()
    }

    /// Runs a closure of a process.
    pub(crate) fn spawn_blocking_as(&self, owner: Owner, task: Box<dyn FnOnce() + Send>) {
        self.0.ready.lock().push_back(Job::Once(owner, task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_only_when_it_is_told_to_and_wakes_in_order() {
        let machine = VirtualPlatform::new(1);
        let woken = Arc::new(Mutex::new(Vec::new()));
        for seconds in [3u64, 1, 2] {
            let (platform, woken) = (machine.clone(), woken.clone());
            machine.spawn(Box::pin(async move {
                platform.sleep(Duration::from_secs(seconds)).await;
                woken.lock().push((seconds, platform.now() - BEGINNING));
            }));
        }

        machine.run_until_idle();
        assert!(woken.lock().is_empty() && machine.now() == BEGINNING);

        machine.advance(Duration::from_millis(2_500));
        let at = |seconds| (seconds, Duration::from_secs(seconds));
        assert_eq!(*woken.lock(), [at(1), at(2)]);
        assert_eq!(machine.now() - BEGINNING, Duration::from_millis(2_500));

        machine.drive(machine.sleep(Duration::from_millis(500)));
        machine.run_until_idle();
        assert_eq!(*woken.lock(), [at(1), at(2), at(3)]);
    }

    #[test]
    fn clear_drops_pending_tasks() {
        let machine = VirtualPlatform::new(1);
        let held = Arc::new(());
        let (platform, inside) = (machine.clone(), held.clone());
        machine.spawn(Box::pin(async move {
            platform.sleep(Duration::from_secs(1)).await;
            drop(inside)
        }));

        machine.run_until_idle();
        machine.clear();
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
