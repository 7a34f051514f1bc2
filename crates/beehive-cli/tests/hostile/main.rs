//! Hostile switches against the program itself: whatever they send, it stays up, its memory is bounded, and another switch is
//! served meanwhile, which is measured.
//!
//! The ordinary run is short. With `BEEHIVE_LONG=1` it is of full size: every byte changed to every other value, a minute of
//! noise, 10 000 half-open connections, 10 000 000 forged addresses. Bytes are put together here, not by the codec that is
//! under test.

mod bystander;
mod daemon;
mod forged_addresses;
mod half_open;
mod mutation;
mod random_bytes;
mod switch;
mod wire;

use std::sync::{Mutex, MutexGuard};

/// Whether the run is to be of full size.
fn is_long() -> bool {
    std::env::var("BEEHIVE_LONG").is_ok_and(|value| value == "1")
}

/// One test at a time: what is measured must not be another test's doing.
fn exclusive() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    // a test that failed holds nothing any more
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
