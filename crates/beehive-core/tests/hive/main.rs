//! One hive under load: order, merges, sweeps, requests and misbehaving handlers, in memory and with a
//! journal.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod accounts;
mod atomicity;
mod blocking_handlers;
mod clock;
mod commit_records;
mod crash_markers;
mod dead_letters;
mod debug_output;
mod deduplication;
mod drop_panics;
mod dropped_messages;
mod embedding;
mod failures;
#[allow(dead_code)] // the tests of mutants use all of it
mod findings;
mod handler_placement;
mod history;
mod in_memory;
mod io_bee_liveness;
mod isolation;
mod journal;
mod live_report;
mod load;
mod log_checks;
#[allow(dead_code)] // the tests of mutants use all of it
mod log_mutants;
mod map_limits;
mod merge;
mod merge_across_logs;
mod merge_dedup;
mod moved_dictionaries;
mod next_program;
mod order;
mod order_across_turns;
mod ownership_handover;
mod poison_messages;
mod postpone;
mod postponed_answers;
mod random_seeds;
mod registry_follows;
mod relay;
mod relay_load;
mod renumbered;
mod replication;
mod request;
mod request_storm;
mod retirement;
mod schema_changes;
mod self_send;
mod settings;
mod several_logs;
mod shared_payloads;
mod stalled_suspects;
mod stateless_recursion;
mod status_counters;
mod stop;
mod stop_log;
mod stop_memory;
mod supervision;
mod sweep;
mod sweep_log;
mod sweep_visits;
mod timers;
mod timers_order;
mod turn_entries;
mod typed_errors;
mod undecodable_values;
mod undo_cost;
mod unencodable_values;
mod unlogged_reads;
mod views;
mod watchdog;
