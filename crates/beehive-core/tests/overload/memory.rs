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

/// Runs a load, and checks that after its first third memory grows by no more than an allocator may retain.
pub(crate) async fn memory_is_flat(what: &str, load: impl Future<Output = ()>) {
    const ROOM: u64 = 12 << 20;
    let time = load_time();
    let sampling = async {
        tokio::time::sleep(time / 3).await;
        let mut high = 0;
        let until = Instant::now() + time * 2 / 3;
        let first = resident();

        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
            high = high.max(resident());
        }

        (first, high)
    };

    let ((first, high), ()) = tokio::join!(sampling, load);
    assert!(high < first + ROOM, "{what}: from {} to {} MiB", first >> 20, high >> 20);
}

/// Tests that measure the process memory take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

pub(crate) fn alone<T>(test: impl FnOnce() -> T) -> T {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    test()
}
