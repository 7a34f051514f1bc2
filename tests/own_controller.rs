//! Checks that the program written by `beehive new` is a complete controller with flags, HTTP, settings,
//! signal handling, and the app.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time in which the controller must exit after a signal.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the path of the controller, which is built with the tests because it is an example.
fn program() -> PathBuf {
    let this = std::env::current_exe().expect("this test's program");
    let folder = this.parent().and_then(Path::parent).expect("a target folder").join("examples");
    folder.join("my_controller")
}

struct Running {
    child: Child,
    http: String,
    first_line: String,
}

impl Running {
    fn start(more: &[&str]) -> Running {
        let mut child = Command::new(program())
            .args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");

        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut line = || lines.next().expect("says where it listens").expect("words");
        let (first_line, _, http) = (line(), line(), line());
        let http =
            http.trim().trim_start_matches("http://").split('/').next().expect("an address").to_string();

        Running { child, http, first_line }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.http).expect("connects");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("asks");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answers");
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // it has already exited, unless a test failed
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_runs_the_app_and_serves_people() {
    let mut controller = Running::start(&[]);
    let line = &controller.first_line;
    assert!(line.starts_with("my_controller (beehive ") && line.ends_with(" runs mine"), "{line}");
    assert!(controller.get("/health").ends_with("ok\n"));
    let status = controller.get("/api/v1/status");
    assert!(
        status.contains("\"name\":\"mine\"") && status.contains("\"name\":\"node-controller\""),
        "{status}"
    );

    assert!(controller.get("/api/v1/switches").ends_with("{\"switches\":[]}"));
    let told =
        Command::new("kill").arg(controller.child.id().to_string()).status().expect("there is a `kill`");
    assert!(told.success());
    let began = Instant::now();
    let status = loop {
        if let Some(status) = controller.child.try_wait().expect("waits") {
            break status;
        }
        assert!(began.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    };

    assert!(status.success(), "{status}");
}

/// Runs the program to its end. Returns its exit status, its output and its errors.
fn ended(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(program()).args(arguments).output().expect("starts");
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), words(&output.stdout), words(&output.stderr))
}

#[test]
fn it_has_the_commands_of_the_daemon() {
    let (succeeded, maps, _) = ended(&["maps"]);
    assert!(succeeded && maps.starts_with("mine\n") && maps.contains("packets[msg.node]"), "{maps}");
    assert!(maps.contains("\nlearning-switch\n"), "{maps}");

    let controller = Running::start(&[]);
    let (succeeded, top, errors) = ended(&["top", "--json", "--http", &controller.http]);
    assert!(succeeded && top.contains("\"mine\""), "{top}{errors}");
    let (succeeded, switches, errors) = ended(&["switches", "--json", "--http", &controller.http]);
    assert!(succeeded && switches.contains("\"switches\""), "{switches}{errors}");

    let (_, help, _) = ended(&["--help"]);
    for command in [
        "switches",
        "ports",
        "links",
        "hosts",
        "flows",
        "dead-letters",
        "maps",
        "provenance",
        "reload",
        "top",
    ] {
        assert!(help.contains(&format!("  {command} ")), "{command} is missing:\n{help}");
    }
    assert!(help.contains("--listen") && help.contains("Usage: my_controller"), "{help}");
}

#[test]
fn its_errors_begin_with_its_own_name() {
    for arguments in [
        &["--app", "min"][..],
        &["--log", "=="],
        &["maps", "--app", "nothing"],
        &["switches", "--http", "127.0.0.1:9"],
        &["top", "--http", "127.0.0.1:9"],
        &["reload", "--http", "127.0.0.1:9"],
    ] {
        let (succeeded, _, errors) = ended(arguments);
        assert!(!succeeded && errors.starts_with("my_controller"), "{arguments:?}: {errors}");
    }
    let (_, version, _) = ended(&["--version"]);
    assert!(version.starts_with("my_controller (beehive "), "{version}");
}

#[test]
fn its_app_stands_among_the_others_as_it_is_told() {
    let controller = Running::start(&["--app", "firewall,mine,learning-switch"]);
    assert!(
        controller.first_line.ends_with(" runs firewall, then mine, then learning-switch"),
        "{}",
        controller.first_line
    );

    let refused = Command::new(program()).args(["--app", "min"]).output().expect("starts");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("did you mean `mine`?"), "{words}");
}
