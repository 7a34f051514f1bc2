//! Reports about messages that take too long: one log line when a message exceeds the limit, and one when
//! its handler returns.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::message::reports::StuckStatus;
use crate::limits;
use std::time::{Duration, Instant};

impl HiveInner {
    /// Returns the messages that are currently taking too long, and how long each of them has been running.
    pub(crate) fn stuck_messages(&self) -> Vec<StuckStatus> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the watchdog measures the real time that handlers take"
        )]
        let now = Instant::now();
        let with_time = |(status, since): &(StuckStatus, Instant)| StuckStatus {
            milliseconds: now.duration_since(*since).as_millis() as u64,
            ..status.clone()
        };
        self.stuck.lock().values().map(with_time).collect()
    }

    /// Records that a handler is holding its thread. From now on, its messages are recorded while they run,
    /// so that they can be reported.
    pub(crate) fn note_held(&self, what: u64) {
        if let Some(app) = self.apps.read().get((what >> 32) as usize) {
            app.note_held(what as u32 as usize, self.now(), false)
        }
    }

    /// Logs the message that the thread of `slot` has been running since `since`, and lists it as stuck.
    #[expect(clippy::disallowed_methods, reason = "the watchdog measures the real time that handlers take")]
    pub(crate) fn note_stuck(&self, slot: usize, what: u64, since: Instant) {
        let shown = self.workers.shown(slot);
        let (app, number) = ((what >> 32) as usize, what as u32 as usize);
        let Some(app) = self.apps.read().get(app).cloned() else { return };
        app.note_held(number, self.now(), true);

        let words = shown.batch.map(|batch| batch.words(shown.at as usize, limits::STUCK_WORDS_BYTES_MAX));
        let status = StuckStatus {
            app: app.name(),
            handler: app.handler_name(number),
            message: app.handles(number),
            cell: (shown.cell.0 != 0).then(|| format!("{:016x}", shown.cell.0)),
            chain: format!("{:016x}", shown.chain),
            words: words.unwrap_or_default(),
            milliseconds: 0,
        };
        let StuckStatus { app, handler, message, cell, chain, words, .. } = &status;
        tracing::warn!(
            app,
            handler,
            kind = message,
            cell,
            chain,
            words,
            "a handler has been running for {:?} and has not returned: its cells are blocked, other cells continue",
            since.elapsed()
        );

        self.stuck.lock().insert(slot, (status, since));
    }

    /// Logs that the handler of `slot`'s reported message has returned, and removes the message from the
    /// list.
    #[expect(clippy::disallowed_methods, reason = "the watchdog measures the real time that handlers take")]
    pub(crate) fn note_unstuck(&self, slot: usize) {
        let Some((status, since)) = self.stuck.lock().remove(&slot) else { return };
        let StuckStatus { app, handler, message, cell, chain, words, .. } = &status;
        let took: Duration = since.elapsed();
        tracing::warn!(
            app,
            handler,
            kind = message,
            cell,
            chain,
            words,
            ?took,
            "a slow handler has returned"
        );
    }
}
