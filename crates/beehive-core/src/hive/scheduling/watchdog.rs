//! The watchdog: detects handlers that hold their thread, and moves the bees waiting behind them to overflow
//! pools.
//!
//! Every few milliseconds, the watchdog checks all slots. It moves the bees waiting behind a held thread to
//! their app's overflow pool. A pool has its own threads: up to a limit, a few more than the app's handlers
//! are holding. A held runner becomes a thread of the pool, and another runner replaces it. If an app holds
//! all of its pool's threads, its other bees have to wait for its own handlers. From then on, the app's bees
//! run only in its pool, and the runners stay available to other apps.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::workers::{Bees, known_slots};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Interval between two checks of the slots.
const LOOK: Duration = Duration::from_millis(2);
/// The time after which a run counts as holding its thread.
///
/// It is slightly more than the time for which an operating system may preempt a thread, because preemption is no
/// reason to move bees.
const HELD: Duration = Duration::from_millis(8);

/// The watchdog's knowledge of a slot's current run.
#[derive(Clone, Copy)]
struct Seen {
    /// Number of the run; odd while a handler is running.
    run: u64,
    /// The time at which a check first saw this run.
    since: Instant,
    /// Whether the watchdog has found that this run holds its thread and has acted on it.
    poked: bool,
    /// The index in the batch of the message that is being handled.
    at: u64,
    /// The time at which a check first saw this message.
    at_since: Instant,
    /// Whether this message has been reported.
    reported: bool,
}

impl Seen {
    /// Starts watching a run first seen by a check at `now`.
    fn of(run: u64, at: u64, now: Instant) -> Seen {
        Seen { run, since: now, poked: false, at, at_since: now, reported: false }
    }
}

/// The watchdog's knowledge of all slots.
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
                // counted first: a runner whose handler returns at this moment uncounts itself
                hive.workers.overflow.adopt(app);
                match hive.workers.replace_runner(at, app) {
                    true => replaced = true,
                    false => hive.workers.overflow.adopt_none(app),
                }
                // the held worker may be the one polling sockets and timers while the others sleep. Spawning
                // a task wakes another worker, which takes over the polling
                hive.platform.spawn(Box::pin(std::future::ready(())))
            }

            waiting.append(&mut hive.workers.take_woken(at));
            if now.duration_since(before.at_since) >= hive.stuck_after && !before.reported {
                before.reported = true;
                hive.note_stuck(at, what, before.at_since)
            }
        }

        if replaced {
            // the queue may contain more of the same app's bees, each of which might hold a runner for a
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

/// Runs the watchdog until the hive is over or dropped. The watchdog has its own thread, because handlers may
/// hold all workers.
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
