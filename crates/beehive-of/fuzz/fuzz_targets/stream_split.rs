//! Fuzzes the framing of segmented streams.

#![no_main]

#[allow(dead_code)]
#[path = "../../tests/wire/harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::stream_split(bytes));
