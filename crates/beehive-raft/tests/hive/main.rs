//! Hives that keep their state in a folder: restarts, power losses under load, and `kill -9`.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

mod apps;
mod backup;
mod killed;
mod power_loss;
mod real_disk;
mod restart;
mod slow_disk;
