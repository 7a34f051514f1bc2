//! The test kit: time and chance in the test's hands, strictness, and what a run with other bees finds.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod attempt;
mod clock;
mod limits;
mod postpone;
mod settings;
mod spread;
mod strictness;
mod views;
