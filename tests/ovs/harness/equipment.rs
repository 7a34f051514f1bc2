//! The programs and privileges that a laboratory needs, and what happens if some of them are missing.

use std::env;
use std::fs;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use super::command::{self, COMMAND_LIMIT};
use super::program;

/// If this environment variable is `1`, missing equipment is a failure. Continuous integration sets it.
const REQUIRE: &str = "BEEHIVE_REQUIRE_OVS";

/// The programs that every laboratory runs, each with its Debian package.
const PROGRAMS: [(&str, &str); 11] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("ip", "iproute2"),
    ("ping", "iputils-ping"),
    ("curl", "curl"),
    ("ovsdb-tool", "openvswitch-switch"),
    ("ovsdb-server", "openvswitch-switch"),
    ("ovs-vswitchd", "openvswitch-switch"),
    ("ovs-vsctl", "openvswitch-switch"),
    ("ovs-ofctl", "openvswitch-switch"),
];

/// Maximum number of laboratories open at the same time. A laboratory uses about a tenth of a processor, so this bounds
/// memory and start-up load, and does not depend on the number of processors.
pub(crate) const LABS_MAX: usize = 6;

/// Which controller a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The program under test.
    Beehive,
    /// Open vSwitch's own `ovs-testcontroller`.
    Peer,
}

/// Returns the path of the controller program that the test needs.
///
/// # Errors
/// Returns a text that says what is missing on this machine and how to get it.
pub(crate) fn find(need: Need) -> Result<PathBuf, String> {
    static MACHINE: OnceLock<Result<(), String>> = OnceLock::new();
    MACHINE.get_or_init(machine).clone()?;
    match need {
        Need::Peer => in_path("ovs-testcontroller")
            .ok_or_else(|| missing("ovs-testcontroller", "openvswitch-testcontroller")),
        Need::Beehive => {
            static BEEHIVE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
            BEEHIVE.get_or_init(program::controller).clone()
        }
    }
}

/// Prints why a test is skipped.
///
/// # Panics
/// Panics if the environment requires that no test is skipped.
pub(crate) fn skip(test: &str, reason: &str) {
    assert!(
        env::var_os(REQUIRE).is_none_or(|value| value != "1"),
        "{test} cannot run, but {REQUIRE}=1: {reason}"
    );
    // This does not use `eprintln!`, because the test runner would show its output only for failed tests.
    let _ = writeln!(stderr(), "\n**** SKIPPED: Open vSwitch test `{test}`: {reason} ****\n");
}

/// A permit to open a laboratory. At the limit, other tests wait until one is dropped.
#[derive(Debug)]
pub(crate) struct Permit(());

static OPEN: Mutex<usize> = Mutex::new(0);
static CLOSED: Condvar = Condvar::new();

impl Permit {
    /// Waits until fewer than [`LABS_MAX`] laboratories are open.
    pub(crate) fn acquire() -> Self {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open =
            CLOSED.wait_while(open, |open| *open >= LABS_MAX).unwrap_or_else(PoisonError::into_inner);
        *open += 1;
        Self(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        CLOSED.notify_one();
    }
}

fn machine() -> Result<(), String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| format!("no /proc: {error}"))?;
    let effective = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    if effective != Some("0") {
        return Err("network namespaces need root".to_owned());
    }
    for (program, package) in PROGRAMS {
        in_path(program).ok_or_else(|| missing(program, package))?;
    }
    if !Path::new("/dev/net/tun").exists() {
        return Err("the userspace datapath needs /dev/net/tun".to_owned());
    }
    let unshare = command::run(Command::new("unshare").args(["--net", "--mount", "true"]), COMMAND_LIMIT);
    if unshare.status.success() {
        Ok(())
    } else {
        Err(format!("no private namespaces here: {}", unshare.error))
    }
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

fn missing(program: &str, package: &str) -> String {
    format!("`{program}` is not in the PATH (Debian: apt install {package})")
}
