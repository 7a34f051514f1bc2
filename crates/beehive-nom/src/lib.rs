//! The network object model of Beehive: switches, ports, packets and flows as messages; the drivers that
//! connect switches to a hive; and the apps of the controller.
//!
//! | module | contents |
//! |---|---|
//! | [`object`] | the types that apps use: nodes, ports, packets, flows; independent of any switch protocol |
//! | [`driver`] | the connection to one switch: an IO bee that runs a [`driver::Driver`]; OpenFlow is one of them |
//! | [`sim`] | an in-memory switch, with the second driver |
//! | [`apps`] | the apps of the controller |
//! | [`parts`] | building blocks for apps: tables with a quota for each port, deadlines, settings |

// the simulator runs this crate: see clippy.toml
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate beehive_core as beehive;

pub mod apps;
pub mod driver;
pub mod limits;
pub mod object;
pub mod parts;
pub mod sim;
