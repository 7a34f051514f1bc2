//! Apps and driver on a simulated switch, on a clock that moves when the test says so.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod chance;
mod clock;
mod history;
mod journal;
mod lab;
mod learning_switch;
mod network;
mod node_controller;
mod oracle;
mod shedding;
