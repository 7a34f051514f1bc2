//! Tests of the test kit: control of time and randomness, strictness, and re-runs with other distributions of
//! cells.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod attempt;
mod clock;
mod failing_runs;
mod failing_steps;
mod hidden_changes;
mod limits;
mod other_names;
mod postpone;
mod result_replies;
mod settings;
mod spread;
mod strictness;
mod views;
