//! Overload tests. They have a process of their own, because they measure its memory.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod backpressure;
mod idle_cost;
mod io_mailbox;
mod journaled_bees;
#[allow(dead_code)] // only the overload tests use all of it
#[path = "../hive/load.rs"]
mod load;
mod memory;
