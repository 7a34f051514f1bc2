//! Runs Open vSwitch with a dummy datapath and dummy ports, which does not require root.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::temporary;

/// Maximum time for a daemon to start. It is generous, because the machine may be under load.
const START_LIMIT: Duration = Duration::from_secs(60);

const SWITCH_DAEMON: &str = "ovs-vswitchd";

/// The two daemons of Open vSwitch in a temporary folder, with one bridge `br0` that has ports 1 and 2.
/// Dropping the switch stops the daemons.
pub(super) struct Switch {
    daemons: Vec<Child>,
    folder: PathBuf,
}

impl Switch {
    /// Starts a switch. Prints a note and returns `None` if Open vSwitch is not installed.
    ///
    /// # Panics
    ///
    /// Panics if the switch does not start, or if Open vSwitch is not installed and `BEEHIVE_REQUIRE_OVS=1`
    /// is set.
    pub(super) fn start() -> Option<Self> {
        for program in ["ovsdb-server", SWITCH_DAEMON, "ovs-vsctl", "ovs-appctl", "setpriv"] {
            let found = Command::new(program).arg("--version").env("PATH", path()).output();
            if let Err(error) = found {
                let required = std::env::var_os("BEEHIVE_REQUIRE_OVS").is_some_and(|value| value == "1");
                assert!(!required, "BEEHIVE_REQUIRE_OVS=1, but {program}: {error}");
                eprintln!("SKIPPED: Open vSwitch cannot run: {program}: {error}");
                return None;
            }
        }

        let folder = temporary::path("");
        std::fs::create_dir(&folder).unwrap();
        let mut switch = Self { daemons: Vec::new(), folder };
        switch.start_daemons();
        let bridge = [
            "add-br br0 -- set Bridge br0 datapath_type=dummy fail-mode=secure",
            "protocols=OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15",
            "-- add-port br0 p1 -- set Interface p1 type=dummy ofport_request=1",
            "-- add-port br0 p2 -- set Interface p2 type=dummy ofport_request=2",
        ];
        let words = bridge.join(" ");
        switch.vsctl(&words.split(' ').collect::<Vec<_>>());
        Some(switch)
    }

    fn start_daemons(&mut self) {
        let folder = self.folder.clone();
        let text = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let (database, socket) = (text("conf.db"), text("db.sock"));
        self.run("ovsdb-tool", &["create", &database]);
        let server = self.daemon(&[
            "ovsdb-server",
            &database,
            &format!("--remote=punix:{socket}"),
            &format!("--unixctl={}", text("ovsdb-server.ctl")),
            "-vsyslog:off",
        ]);
        self.daemons.push(server);
        wait_for(&self.file("db.sock"));
        self.vsctl(&["--no-wait", "init"]);

        // One thread of each kind suffices and keeps the load low.
        let threads = ["other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1"];
        self.vsctl(&["--no-wait", "set", "Open_vSwitch", ".", threads[0], threads[1]]);
        let switch = self.daemon(&[
            SWITCH_DAEMON,
            &format!("unix:{socket}"),
            &format!("--unixctl={}", text("ovs-vswitchd.ctl")),
            "--enable-dummy=override",
            "--disable-system",
            "-vsyslog:off",
        ]);
        self.daemons.push(switch);
        wait_for(&self.file("ovs-vswitchd.ctl"));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the path of the socket on which the bridge accepts controllers.
    pub(super) fn socket(&self) -> PathBuf {
        self.file("br0.mgmt")
    }

    /// Changes the configuration of the switch and waits until the change takes effect.
    pub(super) fn vsctl(&self, words: &[&str]) -> String {
        let database = format!("--db=unix:{}", self.file("db.sock").display());
        self.run("ovs-vsctl", &[&[database.as_str(), "--timeout=60"], words].concat())
    }

    /// Runs a command in the running switch.
    pub(super) fn appctl(&self, words: &[&str]) -> String {
        let target = self.file("ovs-vswitchd.ctl").to_string_lossy().into_owned();
        self.run("ovs-appctl", &[&["-t", target.as_str()], words].concat())
    }

    fn run(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program).args(words).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {words:?}: {error}{}", self.log());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts a daemon that the kernel kills when the test process exits for any reason.
    fn daemon(&self, words: &[&str]) -> Child {
        let log = std::fs::File::create(self.file(&format!("{}.log", words[0]))).unwrap();
        let mut command = self.command("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().unwrap()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for place in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
            command.env(place, &self.folder);
        }
        command.env("PATH", path());
        command
    }

    /// Returns the log of the switch.
    fn log(&self) -> String {
        let bytes = std::fs::read(self.file(&format!("{SWITCH_DAEMON}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the search path for programs, including the folders of daemons.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Waits until a daemon accepts connections on a socket. That the file exists is not enough: it does so as soon as the
/// daemon has bound it, and until the daemon listens, a connection is refused.
fn wait_for(socket: &Path) {
    let start = Instant::now();
    while UnixStream::connect(socket).is_err() {
        assert!(
            start.elapsed() < START_LIMIT,
            "nothing listens on {} after {START_LIMIT:?}",
            socket.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("---- the switch's log\n{}", self.log());
        }
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
