//! A small network laboratory: namespaces, Open vSwitch, hosts, a controller process and a mirror of its connection.
//!
//! | type | is |
//! |---|---|
//! | [`Lab`] | a private environment: namespaces, a directory, and the two daemons of Open vSwitch |
//! | [`Bridge`] | a switch in a lab, with `fail-mode=secure`, which forwards only as its controller says |
//! | [`Host`] | a network namespace with one wire to a switch, an Ethernet and an IP address |
//! | [`Controller`] | the program under test, or another one, as a process with a log |
//! | [`Mirror`] | every OpenFlow message between one bridge and its controller, as the switch sees them |
//!
//! Every wait has a time limit: a command that exceeds its limit is killed, and [`eventually`] panics at its
//! limit.

mod bridge;
mod command;
mod controller;
mod daemon;
mod equipment;
mod host;
mod lab;
mod mirror;
mod pace;
mod ping;
mod program;
mod talk;

pub(crate) use bridge::{Bridge, Protocols};
pub(crate) use controller::Controller;
pub(crate) use daemon::Daemon;
pub(crate) use equipment::LABS_MAX;
pub(crate) use host::Host;
pub(crate) use lab::Lab;
pub(crate) use mirror::Mirror;
pub(crate) use pace::{eventually, stays};
pub(crate) use talk::Talk;
