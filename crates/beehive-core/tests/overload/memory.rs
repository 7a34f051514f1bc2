//! Test support: measurements of the process memory.

use std::future::Future;
use std::time::{Duration, Instant};

/// Returns the duration of a load, long enough to see memory grow; half a minute with `BEEHIVE_LONG=1`.
pub(crate) fn load_time() -> Duration {
    match std::env::var_os("BEEHIVE_LONG") {
        Some(_) => Duration::from_secs(30),
        None => Duration::from_secs(2),
    }
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = status.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    pages * 4096
}

/// Freed memory that an allocator may retain.
const ROOM: u64 = 12 << 20;

/// Runs a load and checks that the most memory it takes after its first third exceeds the most it took in that third by
/// no more than what an allocator may retain. A single sample would not do: between two rounds of a load, much of its
/// memory may be free for a moment.
pub(crate) async fn memory_is_flat(what: &str, load: impl Future<Output = ()>) {
    let time = load_time();
    let sampling = async {
        let first = most_within(time / 3).await;
        (first, most_within(time * 2 / 3).await)
    };

    let ((first, high), ()) = tokio::join!(sampling, load);
    assert!(high < first + ROOM, "{what}: from {} to {} MiB", first >> 20, high >> 20);
}

/// Runs a load and checks that it takes at most `more` bytes of memory, and what an allocator may retain.
pub(crate) async fn memory_stays_within(what: &str, more: u64, load: impl Future<Output = ()>) {
    let before = resident();
    let (high, ()) = tokio::join!(most_within(load_time()), load);
    assert!(high < before + more + ROOM, "{what}: from {} to {} MiB", before >> 20, high >> 20);
}

/// Samples the resident memory of this process and returns the most that it takes within `time`.
async fn most_within(time: Duration) -> u64 {
    let (mut high, until) = (resident(), Instant::now() + time);
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
        high = high.max(resident());
    }
    high
}

/// Tests that measure the process memory take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

pub(crate) fn alone<T>(test: impl FnOnce() -> T) -> T {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    test()
}
