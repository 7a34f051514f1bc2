//! One hive under load: order, merges, sweeps, requests, handlers that misbehave, and all of it on a journal.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod aborts;
mod atomicity;
mod clock;
mod deep;
mod dropping;
mod embedding;
mod ended;
mod figures;
mod held;
mod history;
mod isolation;
mod journal;
mod letters;
mod live_report;
mod load;
mod merge;
mod merged_memory;
mod order;
mod overtaking;
mod owed;
mod postpone;
mod questions;
mod record;
mod remembering;
mod replication;
mod request;
mod retirement;
mod self_send;
mod settings;
mod shapes;
mod snapshots;
mod steady;
mod stop;
mod stuck;
mod supervision;
mod sweep;
mod sweep_log;
mod sweep_turns;
mod timers;
mod timers_order;
mod unreadable;
mod unwritable;
mod whereabouts;
