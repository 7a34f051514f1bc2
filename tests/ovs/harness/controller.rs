//! The controller process: the program under test, or Open vSwitch's own to test the tests.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::daemon::Daemon;
use super::lab::Lab;

/// How long a clean end after SIGTERM may take.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// How long the kernel may take to end a killed process.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A running controller on the laboratory's loopback, port [`Controller::PORT`].
#[derive(Debug)]
pub(crate) struct Controller {
    daemon: Daemon,
}

thread_local! {
    /// Controllers started by this test, so that each has a log of its own.
    static STARTED: Cell<u32> = const { Cell::new(0) };
}

impl Controller {
    /// The port that controllers listen on; each laboratory has a loopback of its own.
    pub(crate) const PORT: u16 = 6653;

    /// Starts `beehive controller`, the learning switch by default.
    pub(crate) fn start(lab: &Lab) -> Self {
        let listen = format!("127.0.0.1:{}", Self::PORT);
        Self::run(lab, &["controller", "--listen", &listen])
    }

    /// Starts `beehive controller` with these apps, and this configuration file's text.
    pub(crate) fn start_with(lab: &Lab, apps: &str, configuration: &str) -> Self {
        let listen = format!("127.0.0.1:{}", Self::PORT);
        let file = lab.file("controller.toml");
        if let Err(error) = std::fs::write(&file, configuration) {
            panic!("cannot write {}: {error}", file.display());
        }
        let file = file.to_string_lossy();
        Self::run(lab, &["controller", "--listen", &listen, "--app", apps, "--config", &file])
    }

    /// Starts `beehive controller` with these options, besides where it listens.
    pub(crate) fn start_options(lab: &Lab, options: &[&str]) -> Self {
        let listen = format!("127.0.0.1:{}", Self::PORT);
        Self::run(lab, &[&["controller", "--listen", &listen], options].concat())
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

    /// What it has written so far.
    pub(crate) fn log(&self) -> String {
        self.daemon.log()
    }

    /// Passes while it runs.
    ///
    /// # Panics
    /// When it has ended by itself, with its log.
    pub(crate) fn assert_running(&mut self) {
        self.daemon.assert_running();
    }

    /// Asks it to end with SIGTERM, as a service manager does; returns how long that took.
    ///
    /// # Panics
    /// When it takes longer than 5 s or ends with another status than 0.
    pub(crate) fn stop(mut self) -> Duration {
        self.daemon.assert_running();
        let start = Instant::now();
        let Some(status) = self.daemon.signal("TERM", STOP_LIMIT) else {
            panic!("the controller still runs {STOP_LIMIT:?} after SIGTERM")
        };
        assert_eq!(status.code(), Some(0), "after SIGTERM the controller ended with {status}");
        start.elapsed()
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(mut self) {
        self.daemon.assert_running();
        assert!(self.daemon.signal("KILL", KILL_LIMIT).is_some(), "a killed controller still runs");
    }
}
