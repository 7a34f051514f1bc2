//! Networks of simulated switches: firewalls, loops, links, hosts, paths.

extern crate beehive_core as beehive;

#[path = "../simulated/clock.rs"]
mod clock;
mod firewall;
mod lab;
