//! Tests the controller process with hostile switches: it keeps running, its memory is bounded, and it serves a
//! bystander, whose latency is measured.
//!
//! By default the tests are short. With `BEEHIVE_LONG=1` they have their full size: every byte changed to every other value, a
//! minute of random bytes, 10 000 half-open connections, 10 000 000 forged addresses. The tests encode messages themselves,
//! because the codec is under test.

mod bystander;
mod daemon;
mod forged_addresses;
mod half_open;
mod mutation;
mod random_bytes;
mod switch;
mod wire;

use std::sync::{Mutex, MutexGuard};

/// Returns whether the tests run at full size.
fn is_long() -> bool {
    std::env::var("BEEHIVE_LONG").is_ok_and(|value| value == "1")
}

/// Runs the tests one at a time so that their measurements do not influence each other.
fn exclusive() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    // a failed test has poisoned the lock, but no longer uses the machine
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
