//! Waits, with a time limit, until a condition holds, or checks that a condition keeps holding.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Interval at which a condition is polled.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Calls `found` until it returns a value. Returns the value and the time that this took.
///
/// # Panics
/// Panics after `limit`, with a message that contains `what`.
pub(crate) fn eventually<T>(
    what: &str,
    limit: Duration,
    mut found: impl FnMut() -> Option<T>,
) -> (T, Duration) {
    let start = Instant::now();
    loop {
        if let Some(value) = found() {
            return (value, start.elapsed());
        }
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        sleep(LOOK_INTERVAL);
    }
}

/// Calls `look` repeatedly for `duration`. Ends early with the first error that `look` returns.
pub(crate) fn stays<E>(duration: Duration, mut look: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let start = Instant::now();
    loop {
        look()?;
        if start.elapsed() >= duration {
            return Ok(());
        }
        sleep(LOOK_INTERVAL);
    }
}
