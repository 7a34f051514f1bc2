//! What a laboratory needs of the machine, and what happens where it is missing.

use std::env;
use std::fs;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use super::command::{self, COMMAND_LIMIT};
use super::program;

/// With the value `1`, missing equipment is a failure. For continuous integration.
const REQUIRE: &str = "BEEHIVE_REQUIRE_OVS";

/// Programs that every laboratory runs, and the Debian package of each.
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

/// The path of the controller program that [`Need`] means.
///
/// # Errors
/// What is missing on this machine, in words, and how to get it.
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

/// Says why a test does not run.
///
/// # Panics
/// When the environment requires that it does.
pub(crate) fn skip(test: &str, reason: &str) {
    assert!(
        env::var_os(REQUIRE).is_none_or(|value| value != "1"),
        "{test} cannot run, but {REQUIRE}=1: {reason}"
    );
    // Not `eprintln!`: the test runner would keep that for failures.
    let _ = writeln!(stderr(), "\n**** SKIPPED: Open vSwitch test `{test}`: {reason} ****\n");
}

/// Leave to have a laboratory open; others wait until it is dropped.
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
