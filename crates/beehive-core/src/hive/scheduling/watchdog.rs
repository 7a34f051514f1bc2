//! Relief: threads for the bees that wait behind handlers that hold theirs, so many for each app.
//!
//! A look at all slots every few milliseconds finds the threads that a handler holds. The bees that wait there go to the
//! *annex* of their app, which has threads of its own: some more than are held, up to a limit. A runner that is held becomes
//! one of them, and another runner takes its place. An app that holds all the threads that it may have waits for itself:
//! from then on its bees run in its annex only, and the runners are there for the others.

use crate::hive::HiveInner;
use crate::hive::dispatch::turn::{Runnable, Turn};
use crate::hive::dispatch::workers::{Bees, known_slots};
use crate::hive::scheduling::stuck::Stuck;
use crate::limits;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Threads of an app that no handler holds: there may be some among the bees that will.
const THREADS_NOT_HELD: usize = 16;
/// How often slots are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// A run that lasts for longer holds its thread.
///
/// Not much more than what the operating system takes a thread off its core for: that is no reason to move anything.
const HELD: Duration = Duration::from_millis(8);

/// The annexes of a hive.
#[derive(Default)]
pub(crate) struct Relief {
    annexes: Mutex<Annexes>,
    /// An app has all the threads that it may have.
    any_full: AtomicBool,
    /// How often bees were taken from behind a handler.
    pub(crate) relieved: AtomicU64,
    pub(crate) stuck: Stuck,
}

#[derive(Default)]
struct Annexes {
    /// By app.
    all: Vec<Annex>,
    threads: usize,
}

/// The bees of one app that wait for a thread other than the one they waited for first.
#[derive(Default)]
struct Annex {
    bees: Bees,
    threads: usize,
    /// It has been said that it is full, and it has not been empty since.
    reported: bool,
}

impl Annexes {
    fn of(&mut self, app: u16) -> &mut Annex {
        let app = usize::from(app);
        if self.all.len() <= app {
            self.all.resize_with(app + 1, Annex::default)
        }
        &mut self.all[app]
    }

    /// Whether an app has all the threads that it may have: one, where those of all apps are used up.
    fn is_full(&self, app: usize) -> bool {
        let most = match self.threads < limits::HELD_THREADS_MAX {
            true => limits::HELD_THREADS_PER_APP_MAX,
            false => 1,
        };
        self.all.get(app).is_some_and(|annex| annex.threads >= most)
    }

    fn count(&mut self, app: u16) {
        self.of(app).threads += 1;
        self.threads += 1
    }

    fn uncount(&mut self, app: u16) {
        let annex = self.of(app);
        annex.threads -= 1;
        annex.reported &= annex.threads > 0;
        self.threads -= 1
    }
}

impl Relief {
    /// Keeps a bee whose app holds all the threads that it may have.
    #[inline]
    pub(crate) fn keep(&self, bee: Arc<dyn Runnable>) -> Option<Arc<dyn Runnable>> {
        match self.any_full.load(Ordering::Relaxed) {
            true => self.keep_if_full(bee),
            false => Some(bee),
        }
    }

    #[cold]
    fn keep_if_full(&self, bee: Arc<dyn Runnable>) -> Option<Arc<dyn Runnable>> {
        let mut annexes = self.annexes.lock();
        let app = bee.app();
        if !annexes.is_full(usize::from(app)) {
            return Some(bee);
        }
        annexes.of(app).bees.push_back(bee);
        None
    }

    /// Adds bees to their annexes. Returns the apps to start a thread for: those that had none.
    fn add(&self, bees: Bees) -> Vec<u16> {
        let mut annexes = self.annexes.lock();
        let mut first = Vec::new();
        for bee in bees {
            let app = bee.app();
            let annex = annexes.of(app);
            annex.bees.push_back(bee);
            if annex.threads == 0 {
                annexes.count(app);
                first.push(app)
            }
        }
        first
    }

    /// The next bee of an annex for one of its threads; with none, the thread is no longer counted.
    fn next(&self, app: u16) -> Option<Arc<dyn Runnable>> {
        let mut annexes = self.annexes.lock();
        let next = annexes.of(app).bees.pop_front();
        if next.is_none() {
            annexes.uncount(app);
            let any = (0..annexes.all.len()).any(|app| annexes.is_full(app));
            self.any_full.store(any, Ordering::Relaxed);
        }
        next
    }

    /// A runner that is held by a handler of `app` is from now on a thread of its annex.
    fn adopt(&self, app: u16) {
        self.annexes.lock().count(app)
    }

    /// The apps to start a thread for, where `held` threads are held by each; and those that are full for the first time.
    fn wanted(&self, held: &[usize]) -> (Vec<u16>, Vec<u16>) {
        let mut annexes = self.annexes.lock();
        let (mut more, mut full) = (Vec::new(), Vec::new());
        for at in 0..annexes.all.len() {
            let (app, before) = (at as u16, more.len());
            let wanted = held.get(at).copied().unwrap_or(0) + THREADS_NOT_HELD;
            let waiting = annexes.of(app).bees.len();
            while more.len() - before < waiting && annexes.of(app).threads < wanted && !annexes.is_full(at) {
                annexes.count(app);
                more.push(app)
            }
            if annexes.is_full(at) {
                self.any_full.store(true, Ordering::Relaxed);
                if !std::mem::replace(&mut annexes.of(app).reported, true) {
                    full.push(app)
                }
            }
        }
        (more, full)
    }
}

impl HiveInner {
    fn start_relief(self: &Arc<Self>, apps: Vec<u16>) {
        for app in apps {
            let hive = self.clone();
            self.platform.spawn_blocking(Box::new(move || Turn::with_kept(&hive, || run(&hive, app))))
        }
    }

    fn report_full(&self, app: u16) {
        if let Some(app) = self.apps.read().get(usize::from(app)) {
            tracing::warn!(
                app = app.name(),
                "handlers of this app hold all the threads that it may have; its other cells wait for them"
            );
        }
    }
}

/// A thread of an annex: runs what is there, and sees to it that what this wakes is run.
pub(crate) fn run(hive: &Arc<HiveInner>, app: u16) {
    let slot = hive.slot_of_thread();
    while let Some(bee) = hive.workers.relief.next(app) {
        Turn::run_bee(hive, slot, bee);
        let woken = hive.workers.take_woken(slot);
        if !woken.is_empty() {
            hive.start_relief(hive.workers.relief.add(woken))
        }
    }
}

#[derive(Clone, Copy)]
struct Seen {
    run: u64,
    since: Instant,
    poked: bool,
    /// The message that it is at, since when, and whether that has been said to be too long.
    at: u64,
    at_since: Instant,
    reported: bool,
}

impl Seen {
    fn of(run: u64, at: u64, now: Instant) -> Seen {
        Seen { run, since: now, poked: false, at, at_since: now, reported: false }
    }
}

/// What was seen at the last look.
#[derive(Default)]
struct Watch {
    slots: Vec<Option<Seen>>,
}

impl Watch {
    fn look(&mut self, hive: &Arc<HiveInner>) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the watchdog measures the real time that handlers take"
        )]
        let now = Instant::now();
        let (mut held, mut replaced) = (Vec::new(), false);
        let mut waiting = Bees::new();
        self.slots.resize(known_slots(), None);
        for (at, seen) in self.slots.iter_mut().enumerate() {
            let (run, what) = hive.workers.busy_with(at);
            let message = hive.workers.is_at(at);
            if let Some(before) = seen
                && before.reported
                && (before.run, before.at) != (run, message)
            {
                hive.note_unstuck(at)
            }
            if run & 1 == 0 {
                *seen = None;
                continue;
            }
            let before = match seen {
                Some(before) if before.run == run => before,
                _ => {
                    *seen = Some(Seen::of(run, message, now));
                    continue;
                }
            };
            if before.at != message {
                (before.at, before.at_since, before.reported) = (message, now, false)
            }
            let since = now.duration_since(before.since);
            if since < HELD {
                continue;
            }
            let app = (what >> 32) as u16;
            if held.len() <= usize::from(app) {
                held.resize(usize::from(app) + 1, 0)
            }
            held[usize::from(app)] += 1;
            hive.workers.wake_later(at);
            if !before.poked {
                before.poked = true;
                hive.note_held(what);
                if hive.workers.replace_runner(at, app) {
                    hive.workers.relief.adopt(app);
                    replaced = true
                }
                // the worker may be the one that looked after sockets and timers, and no other one know that it has to
                hive.platform.spawn(Box::pin(std::future::ready(())))
            }
            waiting.append(&mut hive.workers.take_woken(at));
            if now.duration_since(before.at_since) >= hive.stuck_after && !before.reported {
                before.reported = true;
                hive.note_stuck(at, what, before.at_since)
            }
        }
        if replaced {
            // among what is queued may be many more for the same app: each would hold a runner for a while
            waiting.append(&mut hive.workers.take_all_queued())
        }
        let relief = &hive.workers.relief;
        if !waiting.is_empty() {
            relief.relieved.fetch_add(1, Ordering::Relaxed);
            hive.start_relief(relief.add(waiting))
        }
        let (more, full) = relief.wanted(&held);
        hive.start_relief(more);
        full.into_iter().for_each(|app| hive.report_full(app))
    }
}

/// Looks until the hive is gone or stopped. Runs on a thread of its own, because all workers may be held.
pub(crate) fn relieve(hive: Weak<HiveInner>) {
    let mut watch = Watch::default();
    loop {
        #[expect(clippy::disallowed_methods, reason = "the watchdog has a real thread of its own")]
        std::thread::sleep(LOOK);
        let Some(hive) = hive.upgrade() else { return };
        if hive.is_over() {
            return;
        }
        watch.look(&hive)
    }
}
