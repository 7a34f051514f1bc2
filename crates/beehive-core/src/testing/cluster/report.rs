//! What a failed run of a simulated cluster shows: the command that repeats it, and what happened before.

use super::{Cluster, Trace};
use std::fmt::{Display, Formatter};
use std::path::Path;

/// Number of lines that a report shows by default.
const SHOWN: usize = 40;

/// The variable that names the seed of a run.
pub(super) const SEED: &str = "BEEHIVE_SEED";
/// The variable that says what the report of a failed run is about.
const TRACE: &str = "BEEHIVE_TRACE";

/// Returns what the report should show.
pub(super) fn asked() -> Option<String> {
    std::env::var(TRACE).ok().filter(|what| !what.is_empty())
}

/// Returns the command that runs the current test with one seed. Outside of a test, the program runs again.
pub(super) fn command(seed: u64) -> String {
    let variable = |name| std::env::var(name).ok();
    let Some(test) = test_name() else {
        let program = std::env::args().next().unwrap_or_default();
        return format!("{SEED}={seed} {program}");
    };
    let mut command = format!("{SEED}={seed} cargo test");
    if let Some(package) = variable("CARGO_PKG_NAME") {
        command.push_str(&format!(" -p {package}"))
    }
    if let (Some(target), Some(folder)) = (target(), variable("CARGO_MANIFEST_DIR")) {
        let is_in = |kind: &str| {
            let path = Path::new(&folder).join(format!("{kind}s")).join(&target);
            path.with_extension("rs").exists() || path.join("main.rs").exists()
        };
        if let Some(kind) = ["test", "example"].into_iter().find(|kind| is_in(kind)) {
            command.push_str(&format!(" --{kind} {target}"))
        }
    }
    command + &format!(" -- {test} --exact")
}

/// Returns the name of the test program without the hash that cargo appends.
fn target() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let (name, _hash) = program.file_stem()?.to_str()?.rsplit_once('-')?;
    Some(name.to_string())
}

/// Returns the name of the current test. The test harness gives it to the test's thread, or gets it as an argument.
fn test_name() -> Option<String> {
    let current = std::thread::current();
    match current.name() {
        Some(name) if name != "main" => Some(name.to_string()),
        _ => {
            let exact = std::env::args().any(|argument| argument == "--exact");
            std::env::args().skip(1).find(|argument| exact && !argument.starts_with('-'))
        }
    }
}

/// The newest events of a run that failed.
pub(super) struct Report<'a> {
    seed: u64,
    /// The command that repeats the run.
    command: Option<&'a str>,
    /// What the events are about.
    about: Option<String>,
    events: u64,
    shown: Trace,
}

impl Cluster {
    /// Returns what a failed run shows.
    pub(super) fn report<'a>(&self, command: Option<&'a str>) -> Report<'a> {
        let trace = self.trace();
        let events = trace.events();
        let (about, shown) = match (asked(), self.failure) {
            (Some(all), _) if all == "all" => (None, trace),
            (Some(what), _) => (Some(what.clone()), trace.about(&what)),
            (None, Some(chain)) => {
                let what = format!("#{chain}");
                (Some(what.clone()), trace.about(&what).of_apps().newest(SHOWN))
            }
            (None, None) => (None, trace.of_apps().newest(SHOWN)),
        };
        Report { seed: self.seed, command, about, events, shown }
    }
}

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Report { seed, command, about, events, shown } = self;
        match command {
            Some(command) => writeln!(f, "seed {seed} fails; this repeats it:\n\n    {command}\n")?,
            None => writeln!(f, "the cluster was started with seed {seed}")?,
        }
        let lines = shown.lines().count();
        match about {
            Some(what) => writeln!(f, "{lines} of {events} events, about `{what}`:")?,
            None => writeln!(f, "the last {lines} events of apps ({events} events in all):")?,
        }
        write!(f, "{shown}")?;
        write!(
            f,
            "help: {TRACE}=all shows all events, and {TRACE}='accounts[4]' those about a cell (or a bee, a handler, a message)"
        )
    }
}
