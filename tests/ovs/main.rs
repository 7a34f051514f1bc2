//! The controller against real Open vSwitch: hosts in network namespaces, switches in userspace, traffic by `ping`.
//!
//! Every test opens a [`harness::Lab`]: a private network and mount namespace with its own `ovsdb-server` and
//! `ovs-vswitchd` under a temporary directory, so that tests neither meet each other nor the machine they run on.
//! All of it goes away when the lab is dropped, when a test panics and when the test process is killed.
//!
//! The program under test is `beehive controller` of this workspace, built by the tests themselves in their own profile;
//! `CARGO_BIN_EXE_beehive` in the environment names another one.
//!
//! Needed: Linux, root, and Debian's `openvswitch-switch`, `iproute2`, `iputils-ping`, `curl` and `util-linux`;
//! `openvswitch-testcontroller` for the tests of the harness itself. Where something is missing the tests say
//! `SKIPPED` and why on the error output; with `BEEHIVE_REQUIRE_OVS=1` in the environment that is a failure.

mod bridges;
mod firewall;
mod flow_reconciliation;
mod harness;
mod harness_checks;
mod ipv6;
mod network;
mod ports;
mod protocols;
mod restart;
mod tls;
mod topologies;
mod vlans;
