//! Apps and driver on a simulated switch, on a clock that moves when the test says so.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod clock;
mod harness;
mod journal;
mod learning_switch;
mod map_coverage;
mod network;
mod node_controller;
mod random;
mod serializability;
mod shedding;
