//! Tests the apps and the driver on a simulated switch, with a clock that only the test advances.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod clock;
mod harness;
mod history;
mod journal;
mod learning_switch;
mod map_coverage;
mod mastership;
mod network;
mod node_controller;
mod random;
mod shedding;
