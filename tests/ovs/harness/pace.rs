//! Waiting with a limit: for something to become so, and for something to stay so.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pause between two looks at something awaited.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Looks until `found` yields something and returns it with the time that took.
///
/// # Panics
/// When `limit` has passed; the message names `what`.
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

/// Looks for the whole of `duration` and ends early with the first error that `look` reports.
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
