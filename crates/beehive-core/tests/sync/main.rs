//! Races on the message path: a hive on a registry that answers late, and a model of mailboxes, routes,
//! sender queues, credits and merges whose interleavings are explored.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod merge_storm;
mod model;
mod registry;
mod routing_misses;
mod views;
