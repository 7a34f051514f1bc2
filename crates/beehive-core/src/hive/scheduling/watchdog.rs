//! OverflowPools: threads for the bees that wait behind handlers that hold theirs, so many for each app.
//!
//! A look at all slots every few milliseconds finds the threads that a handler holds. The bees that wait there go to the
//! *pool* of their app, which has threads of its own: some more than are held, up to a limit. A runner that is held becomes
//! one of them, and another runner takes its place. An app that holds all the threads that it may have waits for itself:
//! from then on its bees run in its pool only, and the runners are there for the others.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::workers::{Bees, known_slots};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often slots are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// A run that lasts for longer holds its thread.
///
/// Not much more than what the operating system takes a thread off its core for: that is no reason to move anything.
const HELD: Duration = Duration::from_millis(8);

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
                    hive.workers.overflow.adopt(app);
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
        let overflow = &hive.workers.overflow;
        if !waiting.is_empty() {
            overflow.relieved.fetch_add(1, Ordering::Relaxed);
            hive.start_overflow_threads(overflow.add(waiting))
        }
        let (more, full) = overflow.wanted(&held);
        hive.start_overflow_threads(more);
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
