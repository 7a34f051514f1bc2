//! More work than can be done, in a process of its own: memory is looked at, and other tests have some.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod backpressure;
mod idle_cost;
mod io_mailbox;
#[allow(dead_code)] // what other tests need of it
#[path = "../hive/load.rs"]
mod load;
mod memory;
