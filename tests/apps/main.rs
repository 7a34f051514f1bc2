//! The apps of the examples as they are: on a journal that misbehaves, and under the oracle.
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "../../examples/bank.rs"]
mod bank;
#[allow(dead_code)]
#[path = "../../examples/hello.rs"]
mod hello;
mod journal;
mod oracle;
