//! Checks that every example is short, runs, and prints the expected output (`examples/expected`).
//!
//! `cargo test` builds the examples with the tests; to run only this test, build them with
//! `cargo build --examples` first. To rewrite the expected outputs:
//! `EXAMPLES=write cargo test --test outputs`. In an expected output, `# ms` stands for any number of milliseconds.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Maximum number of lines in an example.
const LINES_MAX: usize = 140;

/// Time after which an example is considered to hang.
const PATIENCE: Duration = Duration::from_secs(60);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Returns the names of the examples, sorted.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder of examples");
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let sources = paths.filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let mut names: Vec<String> = sources.filter_map(|p| Some(p.file_stem()?.to_str()?.to_string())).collect();
    names.sort();
    names
}

/// Returns the path of an example's program next to this test's own, and checks that it is not older than its
/// source.
fn program(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("this test's program");
    let built = this.parent().and_then(Path::parent).expect("a target folder").join("examples").join(name);
    let changed = |path: &Path| path.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let source = folder().join(name).with_extension("rs");
    assert!(
        changed(&built) >= changed(&source),
        "{} is not built from what {} is now: run `cargo build --examples`",
        built.display(),
        source.display()
    );

    built
}

/// Runs an example and returns its standard output.
fn output(name: &str) -> String {
    let mut child =
        Command::new(program(name)).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("starts");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("waits") {
            break status;
        }

        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("{name} does not end");
        }

        std::thread::sleep(Duration::from_millis(10));
    };

    let printed = std::io::read_to_string(child.stdout.take().expect("piped")).expect("text");
    assert!(status.success(), "{name}: {status}\n{printed}");
    printed
}

/// Stands in an expected output for a time, which is a number of milliseconds and differs from run to run.
const TIME: &str = "# ms";

/// Compares what an example has printed with what is expected of it.
fn fits(printed: &str, expected: &str) -> bool {
    let mut parts = expected.split(TIME);
    let Some(mut rest) = parts.next().and_then(|first| printed.strip_prefix(first)) else { return false };
    for part in parts {
        let time = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_time = time.len() < rest.len();
        match time.strip_prefix(" ms").and_then(|after| after.strip_prefix(part)) {
            Some(after) if is_time => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

#[test]
fn only_times_may_differ() {
    for (printed, expected, is_fit) in [
        ("5 ms\n", "# ms\n", true),
        ("a 5 ms, 170 ms b", "a # ms, # ms b", true),
        ("5 ms", "5 ms", true),
        (" ms\n", "# ms\n", false),
        ("x ms\n", "# ms\n", false),
        ("5 ms\nmore", "# ms\n", false),
        ("5 ms", "5 ms\n", false),
        ("6 ms", "5 ms", false),
    ] {
        assert_eq!(fits(printed, expected), is_fit, "{printed:?} and {expected:?}");
    }
}

#[test]
fn examples_say_what_is_expected() {
    let names = names();
    assert!(names.len() >= 7, "{names:?}");
    let mut wrong = Vec::new();

    for name in names {
        let (printed, file) = (output(&name), folder().join("expected").join(&name).with_extension("txt"));
        let mut expected = std::fs::read_to_string(&file).unwrap_or_default();
        if std::env::var("EXAMPLES").is_ok_and(|v| v == "write") && !fits(&printed, &expected) {
            std::fs::write(&file, &printed).expect("writes");
            expected = printed.clone();
        }

        if !fits(&printed, &expected) {
            wrong.push(format!("== {name}\n-- expected\n{expected}-- printed\n{printed}"));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_are_short() {
    for name in names() {
        let source = std::fs::read_to_string(folder().join(&name).with_extension("rs")).expect("a source");
        let lines = source.lines().count();
        assert!(lines <= LINES_MAX, "{name} has {lines} lines; an example has at most {LINES_MAX}");
    }
}
