//! Several hives with a shared registry: messages, requests, crashes and restarts, on a simulated network.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod alarm;
mod bank;
mod deposed;
mod directed;
mod faults;
mod lanes;
mod large;
mod leaders;
mod mail;
mod merges;
mod moves;
mod random;
mod reads;
mod refusals;
mod shared;
mod threads;
mod trace;
mod unreadable;
