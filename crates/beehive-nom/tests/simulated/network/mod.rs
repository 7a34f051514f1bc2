//! Tests networks of simulated switches: firewalls, loops, links, hosts, paths.

mod app_chain;
mod firewall;
mod harness;
mod hosts;
mod links;
mod loops;
mod rewiring;
mod threats;
