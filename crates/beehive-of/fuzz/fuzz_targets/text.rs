//! Fuzzes parsing and displaying flows as text.

#![no_main]

#[allow(dead_code)]
#[path = "../../tests/wire/harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::text(bytes));
