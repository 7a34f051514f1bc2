//! Tests the controller with real Open vSwitch: hosts are network namespaces, switches run in userspace, and `ping`
//! generates the traffic.
//!
//! Every test opens a [`harness::Lab`]: a private network and mount namespace with its own `ovsdb-server` and
//! `ovs-vswitchd` under a temporary directory, so tests interfere neither with each other nor with the
//! machine. Everything is removed when the lab is dropped, even if a test panics or the test process is
//! killed.
//!
//! The program under test is `beehive controller` of this workspace, which the tests build with their own profile. The
//! environment variable `CARGO_BIN_EXE_beehive` names another program.
//!
//! The tests spend most of their time waiting for timeouts and for `ping`. The standard test runner runs as many tests
//! at a time as there are processors. This program has its own `main`, which runs [`harness::LABS_MAX`] tests at a
//! time. Its filters and options are those of the standard runner, but it does not capture the output of tests.
//!
//! The tests need Linux, root, and Debian's packages `openvswitch-switch`, `iproute2`, `iputils-ping`, `curl`
//! and `util-linux`. The tests of the harness itself also need `openvswitch-testcontroller`. If something is
//! missing, the tests print `SKIPPED` and the reason to standard error. With `BEEHIVE_REQUIRE_OVS=1` in the
//! environment, this is a failure.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Lists the tests of a module. A function that is missing from the list is reported by the compiler as unused.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        /// The tests of this module, by name.
        pub(crate) const TESTS: &[(&str, fn())] = &[$((stringify!($name), $name)),*];
    };
}

mod bridges;
mod cluster;
mod firewall;
mod flow_reconciliation;
mod harness;
mod harness_checks;
mod ipv6;
mod network;
mod ports;
mod protocols;
mod restart;
mod soft_flows;
mod tls;
mod topologies;
mod vlans;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(soft_flows::CONTROLLER) {
        return soft_flows::control(std::env::args().len() > 2);
    }

    let mut arguments = Arguments::from_args();
    // The tests spend most of their time waiting, so more of them can run at once than there are processors.
    arguments.test_threads.get_or_insert(harness::LABS_MAX);

    // The longest tests start first so that none of them is left running alone at the end.
    let modules = [
        ("topologies", topologies::TESTS),
        ("flow_reconciliation", flow_reconciliation::TESTS),
        ("harness_checks", harness_checks::TESTS),
        ("cluster", cluster::TESTS),
        ("bridges", bridges::TESTS),
        ("firewall", firewall::TESTS),
        ("ipv6", ipv6::TESTS),
        ("ports", ports::TESTS),
        ("protocols", protocols::TESTS),
        ("restart", restart::TESTS),
        ("soft_flows", soft_flows::TESTS),
        ("tls", tls::TESTS),
        ("vlans", vlans::TESTS),
    ];
    let trials = modules.iter().flat_map(|(module, tests)| {
        tests.iter().map(move |&(name, test)| {
            Trial::test(format!("{module}::{name}"), move || {
                test();
                Ok(())
            })
        })
    });

    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
