//! A private environment: a network namespace, a mount namespace, a directory, and the two daemons of Open
//! vSwitch.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
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

/// Time limit for the start of the namespaces, and for that of each daemon.
const START_LIMIT: Duration = Duration::from_secs(15);

/// Time limit for the keeper to end by itself, after which it is killed.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The daemon that runs all switches of a laboratory.
const SWITCH_DAEMON: &str = "ovs-vswitchd";

/// The script of the process that keeps the namespaces alive. It makes `/run` private (only `ip netns` uses it),
/// and disables IPv6 on the switch's side of the wires. `cat` ends when its input is closed, at the latest when
/// the test process ends, whether it exits or is killed. The script then removes the laboratory's directory, which
/// is its first argument, and the namespaces end together with the script.
const KEEPER: &str = "mount -t tmpfs lab /run && mkdir /run/netns \
    && for scope in all default; do echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6; done \
    && ip link set lo up && echo ready && { cat || true; rm -rf -- \"$1\"; } 2>/dev/null";

/// A private network with Open vSwitch running in it. Dropping it ends all its processes and removes all its
/// files.
#[derive(Debug)]
pub(crate) struct Lab {
    // The fields are dropped in this order: first the processes that use the namespaces, then the keeper of
    // the namespaces, then the files.
    daemons: Vec<Daemon>,
    keeper: Keeper,
    directory: Directory,
    controller: PathBuf,
    _permit: Permit,
}

impl Lab {
    /// Opens a laboratory for the program under test. If the machine lacks something, prints a notice and
    /// returns `None`.
    ///
    /// # Panics
    /// Panics if the daemons do not start, or if the machine lacks something and `BEEHIVE_REQUIRE_OVS=1` is
    /// set.
    pub(crate) fn open(test: &str) -> Option<Self> {
        Self::open_for(test, Need::Beehive)
    }

    /// Same as [`Lab::open`], for Open vSwitch's test controller.
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

    /// Returns the path of the controller program for which this laboratory was opened.
    pub(crate) fn controller(&self) -> &Path {
        &self.controller
    }

    /// Returns the path of a file in this laboratory's directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.0.join(name)
    }

    /// Returns the log of the switches so far.
    pub(crate) fn switch_log(&self) -> String {
        self.daemons.iter().find(|daemon| daemon.name() == SWITCH_DAEMON).map(Daemon::log).unwrap_or_default()
    }

    /// Runs a program inside the laboratory. The program must succeed. Returns its standard output.
    ///
    /// # Panics
    /// Panics if the program fails or does not end in time.
    pub(crate) fn succeed(&self, words: &[&str]) -> String {
        command::succeed(&mut self.inside(words), COMMAND_LIMIT)
    }

    /// Runs a program inside the laboratory. The program may fail.
    ///
    /// # Panics
    /// Panics if the program has not ended after `limit`.
    pub(crate) fn run(&self, words: &[&str], limit: Duration) -> Finished {
        command::run(&mut self.inside(words), limit)
    }

    /// Starts a program inside the laboratory that runs until the returned value is dropped.
    pub(crate) fn daemon(&self, name: &str, words: &[&str]) -> Daemon {
        let words = [&["setpriv", "--pdeathsig", "KILL", "--"], words].concat();
        Daemon::start(name, &mut self.inside(&words), self.file(&format!("{name}.log")))
    }

    /// Returns a command that runs inside the laboratory. `nsenter` replaces itself with the program, so the
    /// id of the child process is that of the program.
    fn inside(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        // A controller reads settings from its environment. Here its settings come only from its command line.
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
        // the file exists before the daemon listens, and until then a connection is refused
        let listens = |socket: &str| UnixStream::connect(self.file(socket)).ok().map(drop);
        eventually("ovsdb-server listens", START_LIMIT, || listens("db.sock"));
        // Use one thread of each kind, because several laboratories share the processors.
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
        eventually("ovs-vswitchd listens", START_LIMIT, || listens("ovs-vswitchd.ctl"));
        self.daemons = vec![switch, server];
    }
}

/// The process that keeps the namespaces alive.
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

    /// Returns the ids of all other processes in the laboratory's network namespace, except for processes inside
    /// its hosts.
    fn inmates(&self) -> Vec<String> {
        let keeper = self.0.id().to_string();
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let (ours, outside) = (namespace(&keeper), namespace("self"));
        // If the keeper has failed before it got a namespace of its own, its namespace is that of the machine, and
        // no process belongs to the laboratory.
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
        // First kill the processes that programs inside have left behind. Nothing here may panic, because the
        // test may already be panicking.
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

/// A new directory, which is removed with its contents when this is dropped. Its path is short, because it
/// contains sockets.
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
