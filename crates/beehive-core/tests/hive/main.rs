//! One hive under load: order, merges, sweeps, requests, handlers that misbehave, and all of it on a journal.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod atomicity;
mod deep;
mod figures;
mod held;
mod isolation;
mod journal;
mod load;
mod merge;
mod one_bee;
mod order;
mod overtaking;
mod owed;
mod postpone;
mod questions;
mod record;
mod remembering;
mod request;
mod retirement;
mod self_send;
mod steady;
mod stop;
mod supervision;
mod sweep;
mod sweep_log;
mod sweep_turns;
mod timers;
mod timers_order;
mod unwritable;
