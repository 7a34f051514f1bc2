//! One private world: a network and a mount namespace, a directory, and Open vSwitch's two daemons.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::command::{self, COMMAND_LIMIT, Finished};
use super::daemon::Daemon;
use super::equipment::{self, Need, Permit};
use super::pace::eventually;

/// How long the namespaces and each daemon may take to be there.
const START_LIMIT: Duration = Duration::from_secs(15);

/// How long the keeper may take to end by itself before it is killed.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The daemon that is all the switches of a laboratory.
const SWITCH_DAEMON: &str = "ovs-vswitchd";

/// Run by the process that keeps the namespaces: `/run` is made private (`ip netns` and nothing else uses it), and
/// the switch's side stays mute on IPv6. `cat` ends when its input is closed, that is with the test process at the
/// latest, however that ends; with it end the namespaces, and the laboratory's directory, the first argument.
const KEEPER: &str = "mount -t tmpfs lab /run && mkdir /run/netns \
    && for scope in all default; do echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6; done \
    && ip link set lo up && echo ready && { cat || true; rm -rf -- \"$1\"; } 2>/dev/null";

/// A private network with Open vSwitch running in it. Dropping it ends every process and removes every trace.
#[derive(Debug)]
pub(crate) struct Lab {
    // Dropped in this order: first who uses the namespaces, then their keeper, then the files.
    daemons: Vec<Daemon>,
    keeper: Keeper,
    directory: Directory,
    controller: PathBuf,
    _permit: Permit,
}

impl Lab {
    /// A laboratory for the program under test; `None`, said loudly, where the machine lacks something.
    ///
    /// # Panics
    /// When something is lacking and `BEEHIVE_REQUIRE_OVS=1`, and when the daemons do not start.
    pub(crate) fn open(test: &str) -> Option<Self> {
        Self::open_for(test, Need::Beehive)
    }

    /// A laboratory for Open vSwitch's own test controller. Otherwise as [`Lab::open`].
    pub(crate) fn open_for_peer(test: &str) -> Option<Self> {
        Self::open_for(test, Need::Peer)
    }

    fn open_for(test: &str, need: Need) -> Option<Self> {
        let controller = match equipment::find(need) {
            Ok(path) => path,
            Err(reason) => {
                equipment::skip(test, &reason);
                return None;
            }
        };
        let permit = Permit::acquire();
        let directory = Directory::create();
        let keeper = Keeper::start(&directory);
        let mut lab = Self { daemons: Vec::new(), keeper, directory, controller, _permit: permit };
        lab.start_open_vswitch();
        Some(lab)
    }

    /// The controller program this laboratory was opened for.
    pub(crate) fn controller(&self) -> &Path {
        &self.controller
    }

    /// A file of this laboratory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.0.join(name)
    }

    /// What the switches have written to their log so far.
    pub(crate) fn switch_log(&self) -> String {
        self.daemons.iter().find(|daemon| daemon.name() == SWITCH_DAEMON).map(Daemon::log).unwrap_or_default()
    }

    /// Runs a program inside; it must succeed. Returns its standard output.
    ///
    /// # Panics
    /// When it fails or is not through in time.
    pub(crate) fn succeed(&self, words: &[&str]) -> String {
        command::succeed(&mut self.inside(words), COMMAND_LIMIT)
    }

    /// Runs a program inside, whatever its outcome.
    ///
    /// # Panics
    /// When it is not through after `limit`.
    pub(crate) fn run(&self, words: &[&str], limit: Duration) -> Finished {
        command::run(&mut self.inside(words), limit)
    }

    /// Starts a program inside that runs until it is dropped.
    pub(crate) fn daemon(&self, name: &str, words: &[&str]) -> Daemon {
        let words = [&["setpriv", "--pdeathsig", "KILL", "--"], words].concat();
        Daemon::start(name, &mut self.inside(&words), self.file(&format!("{name}.log")))
    }

    /// `nsenter` becomes the program it starts, so that the child's id is the program's.
    fn inside(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        // A controller takes settings from its environment; what it is run with here is said on its command line.
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BEEHIVE_")) {
            command.env_remove(name);
        }
        command.arg(format!("--target={}", self.keeper.0.id())).args(["--net", "--mount", "--"]).args(words);
        for place in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
            command.env(place, &self.directory.0);
        }
        command
    }

    fn start_open_vswitch(&mut self) {
        let text = |name: &str| self.file(name).to_string_lossy().into_owned();
        let (database, socket) = (text("conf.db"), text("db.sock"));
        self.succeed(&["ovsdb-tool", "create", &database]);
        let server = self.daemon(
            "ovsdb-server",
            &[
                "ovsdb-server",
                &database,
                &format!("--remote=punix:{socket}"),
                &format!("--pidfile={}", text("ovsdb-server.pid")),
                &format!("--unixctl={}", text("ovsdb-server.ctl")),
                "-vsyslog:off",
            ],
        );
        eventually("ovsdb-server listens", START_LIMIT, || self.file("db.sock").exists().then_some(()));
        // One thread of each kind: several laboratories share the processors.
        self.succeed(&["ovs-vsctl", "--no-wait", "init"]);
        self.succeed(&[
            "ovs-vsctl",
            "--no-wait",
            "set",
            "Open_vSwitch",
            ".",
            "other_config:n-handler-threads=1",
            "other_config:n-revalidator-threads=1",
        ]);
        let switch = self.daemon(
            SWITCH_DAEMON,
            &[
                SWITCH_DAEMON,
                &format!("unix:{socket}"),
                &format!("--pidfile={}", text("ovs-vswitchd.pid")),
                &format!("--unixctl={}", text("ovs-vswitchd.ctl")),
                "--disable-system",
                "-vsyslog:off",
            ],
        );
        eventually("ovs-vswitchd listens", START_LIMIT, || {
            self.file("ovs-vswitchd.ctl").exists().then_some(())
        });
        self.daemons = vec![switch, server];
    }
}

/// The process in which the namespaces live.
#[derive(Debug)]
struct Keeper(Child);

impl Keeper {
    fn start(directory: &Directory) -> Self {
        let child = Command::new("unshare")
            .args(["--net", "--mount", "--propagation=private", "sh", "-ec", KEEPER, "keeper"])
            .arg(&directory.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start unshare: {error}"));
        let mut keeper = Self(child);
        let Some(output) = keeper.0.stdout.take() else { panic!("the keeper has no output") };
        let (said, hears) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = said.send(line);
        });
        let line = hears.recv_timeout(START_LIMIT).unwrap_or_default();
        assert_eq!(line.trim_end(), "ready", "the namespaces were not made within {START_LIMIT:?}");
        keeper
    }

    /// The ids of all other processes in the laboratory's network namespace, not counting those inside its hosts.
    fn inmates(&self) -> Vec<String> {
        let keeper = self.0.id().to_string();
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let (ours, outside) = (namespace(&keeper), namespace("self"));
        // A keeper that did not get as far as a namespace of its own has no inmates: it stands among everybody else.
        if ours.is_none() || outside.is_none() || ours == outside {
            return Vec::new();
        }
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| *name != keeper && namespace(name) == ours).collect()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Whatever a program inside has left behind goes first. Nothing here may panic: a test may be doing so.
        for stray in self.inmates() {
            let _ = Command::new("kill").args(["-s", "KILL", &stray]).stderr(Stdio::null()).status();
        }
        drop(self.0.stdin.take());
        let start = Instant::now();
        while start.elapsed() < END_LIMIT && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A fresh directory, removed with all it holds. Its path is short: sockets live in it.
#[derive(Debug)]
struct Directory(PathBuf);

impl Directory {
    fn create() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("beehive-ovs-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
