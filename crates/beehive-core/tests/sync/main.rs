//! What threads and a late registry can do to the way of a message: a hive on a registry that answers late, and a model
//! of mailbox, routes, lanes, credits and merge whose interleavings are explored.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod merge_storm;
mod model;
mod registry;
mod routing_misses;
mod views;
