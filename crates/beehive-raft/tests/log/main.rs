//! The log on simulated files: power losses, failing files, and damage.
#![allow(missing_docs)]

mod checkpoints;
mod client;
mod damage;
mod faults;
mod power_loss;
