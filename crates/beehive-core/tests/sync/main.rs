//! Races on the message path: tests of a hive on a registry that answers late, and a model of mailboxes,
//! routes, sender queues, credits and merges, whose interleavings a scheduler explores.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod held_merges;
mod lost_answers;
mod merge_storm;
mod model;
mod registry;
mod routing_misses;
mod views;
