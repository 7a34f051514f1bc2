//! Runs a command until it ends or reaches a time limit.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Time limit for an ordinary configuration command, after which it is killed.
pub(crate) const COMMAND_LIMIT: Duration = Duration::from_secs(15);

/// Interval at which a running child is polled.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The result of a command that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The exit status.
    pub(crate) status: ExitStatus,
    /// The standard output.
    pub(crate) output: String,
    /// The standard error.
    pub(crate) error: String,
}

/// Runs `command` and collects its output.
///
/// # Panics
/// Panics if the command cannot be started, or if it has not ended after `limit`. In the latter case, the
/// command is killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Finished {
    let line = describe(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start `{line}`: {error}"));
    let output = child.stdout.take().map(collect);
    let error = child.stderr.take().map(collect);
    let status = wait(&mut child, limit).unwrap_or_else(|| {
        let _ = child.kill();
        let _ = child.wait();
        panic!("`{line}`: not through after {limit:?}, killed")
    });
    Finished { status, output: text_of(output), error: text_of(error) }
}

/// Same as [`run`], but the command must succeed. Returns its standard output.
///
/// # Panics
/// Panics in the same cases as [`run`], and if the command fails. The message then contains the output of the
/// command.
pub(crate) fn succeed(command: &mut Command, limit: Duration) -> String {
    let finished = run(command, limit);
    assert!(
        finished.status.success(),
        "`{}` failed, {}\n{}{}",
        describe(command),
        finished.status,
        finished.output,
        finished.error
    );
    finished.output
}

/// Waits until a child exits. Returns `None` if it is still running after `limit`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() >= limit => return None,
            Ok(None) => sleep(LOOK_INTERVAL),
            Err(error) => panic!("cannot wait for process {}: {error}", child.id()),
        }
    }
}

/// Reads a pipe in a thread of its own so that a full pipe never stops the child.
fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn text_of(collector: Option<thread::JoinHandle<String>>) -> String {
    collector.and_then(|thread| thread.join().ok()).unwrap_or_default()
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
