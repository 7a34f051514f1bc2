//! Networks of simulated switches: firewalls, loops, links, hosts, paths.

mod firewall;
mod four_apps;
mod hosts;
mod lab;
mod links;
mod loops;
mod rewired;
mod threats;
