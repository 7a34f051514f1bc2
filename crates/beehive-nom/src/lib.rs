//! Beehive's network object model, with the controller's drivers and apps. Switches, ports, packets and flows are
//! represented as messages. A driver connects a switch to a hive.
//!
//! | module | contents |
//! |---|---|
//! | [`object`] | the types that apps use: nodes, ports, packets, flows; independent of any switch protocol |
//! | [`driver`] | the connection to one switch: an IO bee that runs a [`driver::Driver`], such as that of OpenFlow |
//! | [`sim`] | an in-memory switch and its driver |
//! | [`apps`] | the apps of the controller |
//! | [`parts`] | building blocks for apps: tables with a quota for each port, deadlines, settings |

// the simulator must be able to run this crate, so clippy.toml disallows methods and types such as real clocks
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate beehive_core as beehive;

pub mod apps;
pub mod driver;
pub mod limits;
pub mod object;
pub mod parts;
pub mod sim;
