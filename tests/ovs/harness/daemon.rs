//! A process that runs until it is stopped, with its output in a file.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::command;

/// Number of log lines to show when a test fails.
const LOG_TAIL_LINES: usize = 60;

/// A running child process and its log. Dropping it kills the process and, if the test is failing, prints the log.
///
/// [`super::Lab::daemon`] asks the kernel to kill the process when the thread that started it ends, so even a
/// killed test process leaves no process behind.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command` with both outputs appended to `log`.
    ///
    /// # Panics
    /// Panics if the process cannot be started.
    pub(crate) fn start(name: &str, command: &mut Command, log: PathBuf) -> Self {
        let open = || File::options().create(true).append(true).open(&log);
        let (output, error) = open()
            .and_then(|output| Ok((output, open()?)))
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", log.display()));
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(error)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Self { name: name.to_owned(), child, log }
    }

    /// Returns the name under which the process was started.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns everything that the process has written so far.
    pub(crate) fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Checks that the process is still running.
    ///
    /// # Panics
    /// Panics with the log if the process has ended.
    pub(crate) fn assert_running(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            panic!("{} has ended by itself, {status}:\n{}", self.name, self.log());
        }
    }

    /// Sends a signal that does not end the process.
    pub(crate) fn send(&self, signal: &str) {
        let id = self.child.id().to_string();
        command::succeed(Command::new("kill").args(["-s", signal, &id]), command::COMMAND_LIMIT);
    }

    /// Sends a signal, such as `TERM`, and waits until the process exits. Returns `None` if it is still
    /// running after `limit`.
    pub(crate) fn signal(&mut self, signal: &str, limit: Duration) -> Option<ExitStatus> {
        let id = self.child.id().to_string();
        command::succeed(Command::new("kill").args(["-s", signal, &id]), command::COMMAND_LIMIT);
        command::wait(&mut self.child, limit)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(LOG_TAIL_LINES)..).unwrap_or_default();
            eprintln!("---- end of the log of {} ({} lines)\n{}", self.name, lines.len(), tail.join("\n"));
        }
    }
}
