//! Running a command to its end, or to a limit.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// How long an ordinary configuration command may take before it is killed.
pub(crate) const COMMAND_LIMIT: Duration = Duration::from_secs(15);

/// Pause between two looks at a running child.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// What a command that came to its end left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// Its standard output.
    pub(crate) output: String,
    /// Its standard error.
    pub(crate) error: String,
}

/// Runs `command` and collects what it says.
///
/// # Panics
/// When it cannot be started, and when it is not through after `limit`: it is then killed.
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

/// As [`run`], and the command must succeed; returns its standard output.
///
/// # Panics
/// As [`run`], and when the command fails, with what it said.
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

/// Waits for a child; `None` when it still runs after `limit`.
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

/// Reads a pipe in a thread of its own, so that a full pipe never stops the child.
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
