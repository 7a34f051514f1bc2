//! The watchdog: detects handlers that hold their thread, and moves the bees that wait behind them to
//! overflow pools.
//!
//! Every few milliseconds it checks all worker slots. The bees that wait on a held thread move to the
//! overflow pool of their app, which has threads of its own: a few more than the app holds, up to a limit.
//! A runner that is held becomes one of the pool's threads, and another runner replaces it. An app that
//! holds all threads of its pool waits for itself: from then on its bees run in its pool only, and the
//! runners stay available to other apps.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::workers::{Bees, known_slots};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Interval between two checks of the slots.
const LOOK: Duration = Duration::from_millis(2);
/// A run that takes longer holds its thread.
///
/// This is just above the time for which an operating system may preempt a thread, which is no reason to
/// move bees.
const HELD: Duration = Duration::from_millis(8);

/// What the watchdog knows about the current run of a slot.
#[derive(Clone, Copy)]
struct Seen {
    /// Number of the run; odd while the slot is busy.
    run: u64,
    /// When a check first saw this run.
    since: Instant,
    /// Whether the watchdog has already found that this run holds its thread, and acted on it.
    poked: bool,
    /// The message that the slot is running.
    at: u64,
    /// When a check first saw this message.
    at_since: Instant,
    /// Whether this message was reported.
    reported: bool,
}

impl Seen {
    /// Starts to watch a run that a check at `now` sees for the first time.
    fn of(run: u64, at: u64, now: Instant) -> Seen {
        Seen { run, since: now, poked: false, at, at_since: now, reported: false }
    }
}

/// What the watchdog knows about all slots.
#[derive(Default)]
struct Watch {
    slots: Vec<Option<Seen>>,
}

impl Watch {
    /// Checks all slots once.
    fn look(&mut self, hive: &Arc<HiveInner>) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the watchdog measures the real time that handlers take"
        )]
        let now = Instant::now();

        hive.log_clients().iter().for_each(|link| link.append_old());

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
                // the held worker may have been the one that polls sockets and timers while the others
                // sleep; a new task wakes another worker, which takes over
                hive.platform.spawn(Box::pin(std::future::ready(())))
            }

            waiting.append(&mut hive.workers.take_woken(at));
            if now.duration_since(before.at_since) >= hive.stuck_after && !before.reported {
                before.reported = true;
                hive.note_stuck(at, what, before.at_since)
            }
        }

        if replaced {
            // the queue may contain more bees of the same app, each of which would hold a runner for a
            // while
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

/// Runs the watchdog until the hive is dropped or over. It has a thread of its own, because all workers may
/// be held.
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
