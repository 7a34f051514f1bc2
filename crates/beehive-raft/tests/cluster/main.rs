//! Three hives, each with a runtime of its own, on openraft and a network in memory.

extern crate beehive_core as beehive;

#[path = "../common/certificates.rs"]
mod certificates;

mod failover;
mod hives;
mod leaving;
mod lost;
mod net;
mod partition;
mod program;
mod registry;
mod replaced;
mod replicas;
mod returns;
mod shared;
mod sockets;
mod start;
