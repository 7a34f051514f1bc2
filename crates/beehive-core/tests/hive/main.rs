//! One hive under load: order, merges, sweeps, requests, overload, handlers that misbehave, and all of it on a journal.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod atomicity;
mod isolation;
mod journal;
mod load;
mod merge;
mod order;
mod overload;
mod record;
mod remembering;
mod request;
mod sweep;
mod sweep_log;
