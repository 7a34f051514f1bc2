//! Mutants: each rule of the protocol between bees and logs, broken on purpose, is found by a checker.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

#[path = "../hive/accounts.rs"]
mod accounts;
mod acks;
mod after_the_end;
mod directed;
#[path = "../hive/findings.rs"]
mod findings;
#[allow(dead_code)] // this program uses only the random numbers
#[path = "../hive/load.rs"]
mod load;
#[path = "../hive/log_checks.rs"]
mod log_checks;
#[path = "../hive/log_mutants.rs"]
mod log_mutants;
mod marks;
#[path = "../hive/relay.rs"]
mod relay;
#[path = "../hive/relay_load.rs"]
mod relay_load;
mod seeds;
mod sweep_ends;
