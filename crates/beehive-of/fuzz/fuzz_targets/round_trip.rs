//! Fuzzes decoding followed by encoding in every version.

#![no_main]

#[allow(dead_code)]
#[path = "../../tests/wire/harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::framed(bytes, harness::round_trip));
