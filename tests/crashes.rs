//! Runs the tests of `examples/crashes.rs`.

#[allow(dead_code, reason = "`main` runs in the example")]
#[path = "../examples/crashes.rs"]
mod crashes;
