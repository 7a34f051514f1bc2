//! The network object model of Beehive: switches, ports, packets and flows as messages; the drivers that speak for
//! switches; and the apps of the controller.
//!
//! | room | what is in it |
//! |---|---|
//! | [`object`] | what apps speak: nodes, ports, packets, flows. No protocol of any switch |
//! | [`driver`] | what speaks for one switch: an IO bee over a [`driver::Driver`]; OpenFlow is one |
//! | [`sim`] | a switch that exists in memory only: the second driver |
//! | [`apps`] | the apps of the controller |
//! | [`parts`] | what apps are made of besides objects: tables with a limit for each port, deadlines, settings |

// the simulator runs this crate: see clippy.toml
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate beehive_core as beehive;

pub mod apps;
pub mod driver;
pub mod limits;
pub mod object;
pub mod parts;
pub mod sim;
