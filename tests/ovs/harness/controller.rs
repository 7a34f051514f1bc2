//! The controller process: the program under test, or Open vSwitch's test controller, which is used to test
//! the harness.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::daemon::Daemon;
use super::lab::Lab;

/// Time limit for a clean exit after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Time limit for the kernel to end a killed process.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A running controller on the laboratory's loopback, port [`Controller::PORT`].
#[derive(Debug)]
pub(crate) struct Controller {
    daemon: Daemon,
}

/// A process that is stopped. Dropping this lets it go on.
#[derive(Debug)]
pub(crate) struct Paused<'a>(&'a mut Daemon);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.send("CONT")
    }
}

thread_local! {
    /// Number of controllers that this test has started. It gives each of them a separate log.
    static STARTED: Cell<u32> = const { Cell::new(0) };
}

impl Controller {
    /// The port on which controllers listen. Each lab has its own loopback interface, so the port is always
    /// free.
    pub(crate) const PORT: u16 = 6653;

    /// Starts `beehive controller` with its default app, the learning switch.
    pub(crate) fn start(lab: &Lab) -> Self {
        let listen = format!("127.0.0.1:{}", Self::PORT);
        Self::run(lab, &["controller", "--listen", &listen])
    }

    /// Starts `beehive controller` with these apps and this text as its configuration file.
    pub(crate) fn start_with(lab: &Lab, apps: &str, configuration: &str) -> Self {
        let listen = format!("127.0.0.1:{}", Self::PORT);
        let file = lab.file("controller.toml");
        if let Err(error) = std::fs::write(&file, configuration) {
            panic!("cannot write {}: {error}", file.display());
        }
        let file = file.to_string_lossy();
        Self::run(lab, &["controller", "--listen", &listen, "--app", apps, "--config", &file])
    }

    /// Starts `beehive controller` with these options in addition to its address.
    pub(crate) fn start_options(lab: &Lab, options: &[&str]) -> Self {
        let listen = format!("127.0.0.1:{}", Self::PORT);
        Self::run(lab, &[&["controller", "--listen", &listen], options].concat())
    }

    /// Starts hive `number` of a cluster of `hives`, with these options in addition to its addresses. It listens on port
    /// [`Controller::port_of`].
    pub(crate) fn start_hive(lab: &Lab, (number, hives): (u16, u16), options: &[&str]) -> Self {
        let all: Vec<String> = (1..=hives).map(|hive| format!("127.0.0.1:{}", 7100 + hive)).collect();
        let all = all.join(",");
        let listen = format!("127.0.0.1:{}", Self::port_of(number));
        let http = format!("127.0.0.1:{}", 8653 + number);
        let number = number.to_string();
        let own = ["controller", "--cluster", &all, "--hive", &number, "--listen", &listen, "--http", &http];
        Self::run(lab, &[&own, options].concat())
    }

    /// Returns the port on which a hive of a cluster listens for switches.
    pub(crate) const fn port_of(hive: u16) -> u16 {
        Self::PORT + hive
    }

    /// Stops the process for a while, as if the machine did not run it: SIGSTOP, and SIGCONT when the returned value is dropped.
    pub(crate) fn pause(&mut self) -> Paused<'_> {
        self.daemon.send("STOP");
        Paused(&mut self.daemon)
    }

    /// Starts Open vSwitch's test controller with these options; needs [`Lab::open_for_peer`].
    pub(crate) fn start_peer(lab: &Lab, options: &[&str]) -> Self {
        let listen = format!("ptcp:{}:127.0.0.1", Self::PORT);
        let control = lab.file("peer.ctl").to_string_lossy().into_owned();
        let control = format!("--unixctl={control}");
        Self::run(lab, &[options, &[&control, "-vsyslog:off", &listen]].concat())
    }

    fn run(lab: &Lab, options: &[&str]) -> Self {
        let program = lab.controller().to_string_lossy();
        let name = format!("controller-{}", STARTED.replace(STARTED.get() + 1));
        Self { daemon: lab.daemon(&name, &[&[&*program], options].concat()) }
    }

    /// Returns the log so far.
    pub(crate) fn log(&self) -> String {
        self.daemon.log()
    }

    /// Checks that the controller is still running.
    ///
    /// # Panics
    /// Panics with the log if the controller has ended by itself.
    pub(crate) fn assert_running(&mut self) {
        self.daemon.assert_running();
    }

    /// Sends SIGTERM, like a service manager, and waits until the controller has exited. Returns how long
    /// that took.
    ///
    /// # Panics
    /// Panics if this takes longer than 5 s, or if the exit status is not 0.
    pub(crate) fn stop(mut self) -> Duration {
        self.daemon.assert_running();
        let start = Instant::now();
        let Some(status) = self.daemon.signal("TERM", STOP_LIMIT) else {
            panic!("the controller still runs {STOP_LIMIT:?} after SIGTERM")
        };
        assert_eq!(status.code(), Some(0), "after SIGTERM the controller ended with {status}");
        start.elapsed()
    }

    /// Kills the controller, which simulates a crash.
    pub(crate) fn kill(mut self) {
        self.daemon.assert_running();
        assert!(self.daemon.signal("KILL", KILL_LIMIT).is_some(), "a killed controller still runs");
    }
}
