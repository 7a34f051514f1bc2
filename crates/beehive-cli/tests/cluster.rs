//! Runs `beehive cluster up` as a process: a hive that is killed, Ctrl-C, and a parent that is killed.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time within which anything has to happen that has no limit of its own.
const PATIENCE: Duration = Duration::from_secs(20);

fn beehive(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beehive"));
    command.arg("cluster").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running cluster. It is killed when dropped.
struct Up {
    child: Child,
    lines: mpsc::Receiver<String>,
    /// The process id of each hive, and its address.
    hives: Vec<(u32, String)>,
}

impl Up {
    fn start(arguments: &[&str]) -> Up {
        let mut child =
            beehive(&[&["up"], arguments].concat()).stderr(Stdio::inherit()).spawn().expect("starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                println!("{line}");
                let _ = sender.send(line);
            }
        });
        let mut up = Up { child, lines, hives: Vec::new() };
        loop {
            let line = up.line("");
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["hive", number, "pid", pid, http, "leads", ..] => {
                    assert_eq!(number.parse(), Ok(up.hives.len() + 1), "{line}");
                    let address = http.strip_prefix("http://").expect("an address");
                    up.hives.push((pid.parse().expect("a process id"), address.to_string()))
                }
                ["Ctrl-C", ..] => return up,
                _ => {}
            }
        }
    }

    /// Returns the next line that contains these words.
    fn line(&self, words: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no line with: {words}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Asks a hive until it answers. Returns the body.
    fn ask(&self, hive: usize, request: &str) -> String {
        let began = Instant::now();
        loop {
            let mut stream = TcpStream::connect(&self.hives[hive].1).expect("connects");
            let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).expect("asks");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("answers");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
            // while another hive takes over, an answer may be late
            let is_late = head.starts_with("HTTP/1.1 503") || head.starts_with("HTTP/1.1 504");
            if !is_late || began.elapsed() > PATIENCE {
                return body.to_string();
            }
        }
    }

    /// Sends a signal to the parent, and waits until it has ended. Returns whether with success.
    fn end(&mut self, signal: Signal) -> bool {
        kill_process(Pid::from_child(&self.child), signal).expect("runs");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                return status.success();
            }
            assert!(began.elapsed() < Duration::from_secs(6), "it does not end");
            std::thread::sleep(Duration::from_millis(5))
        }
    }

    /// Waits until all hives have ended.
    fn all_end(&self) {
        let began = Instant::now();
        while self.hives.iter().any(|(pid, _)| runs(*pid)) {
            assert!(began.elapsed() < Duration::from_secs(6), "a hive outlives its parent");
            std::thread::sleep(Duration::from_millis(5))
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).expect("a process id"), Signal::KILL).expect("runs")
}

/// Checks whether a process runs. One that nobody has waited for yet has ended.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn killing_one_of_three_hives_loses_nothing_and_ctrl_c_ends_all() {
    let mut up = Up::start(&[]);
    assert_eq!(up.hives.len(), 3);
    assert_eq!(up.ask(0, "GET /color"), "color has no value\n");
    for key in 0..8 {
        let written = up.ask(0, &format!("PUT /key-{key}/red"));
        assert_eq!(written, format!("key-{key} = red (written 1 times)\n"));
        assert_eq!(up.ask(2, &format!("GET /key-{key}")), "red\n");
    }

    kill(up.hives[0].0);
    let ended = up.line("has ended");
    assert!(
        ended.starts_with("hive 1  pid ")
            && ended.ends_with("has ended (signal: 9 (SIGKILL)); 2 of 3 run, and take over"),
        "{ended}"
    );
    for key in 0..8 {
        assert_eq!(up.ask(1, &format!("GET /key-{key}")), "red\n");
        assert_eq!(
            up.ask(2, &format!("PUT /key-{key}/blue")),
            format!("key-{key} = blue (written 2 times)\n")
        );
        assert_eq!(up.ask(1, &format!("GET /key-{key}")), "blue\n");
    }
    // the two others lead the six colonies
    up.line(" of 6 colonies");

    assert!(up.end(Signal::INT), "Ctrl-C is no failure");
    up.line("all hives have ended");
    assert!(up.hives.iter().all(|(pid, _)| !runs(*pid)));
}

#[test]
fn a_hive_that_is_asked_to_end_does_so_properly_and_the_others_go_on() {
    let mut up = Up::start(&[]);
    for key in 0..8 {
        assert_eq!(up.ask(0, &format!("PUT /key-{key}/red")), format!("key-{key} = red (written 1 times)\n"));
    }
    kill_process(Pid::from_raw(up.hives[0].0 as i32).expect("a process id"), Signal::TERM).expect("runs");
    for key in 0..8 {
        assert_eq!(
            up.ask(1, &format!("PUT /key-{key}/blue")),
            format!("key-{key} = blue (written 2 times)\n")
        );
    }
    let ended = up.line("has ended");
    assert!(ended.ends_with("has ended (exit status: 0); 2 of 3 run, and take over"), "{ended}");
    assert!(up.end(Signal::INT), "Ctrl-C is no failure");
}

#[test]
fn hives_with_folders_return_one_by_one_and_all_at_once() {
    let data = std::env::temp_dir().join(format!("beehive-cluster-up-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&data);
    let arguments = ["--data", data.to_str().expect("words")];
    let mut up = Up::start(&arguments);
    for key in 0..4 {
        assert_eq!(up.ask(0, &format!("PUT /key-{key}/red")), format!("key-{key} = red (written 1 times)\n"));
    }
    kill(up.hives[0].0);
    up.line("2 of 3 run, and take over");
    // it is killed once more before it runs
    let again = up.line("is started again");
    let pid = again.split_whitespace().nth(3).and_then(|pid| pid.parse().ok()).expect("a process id");
    kill(pid);
    up.line("2 of 3 run, and take over");
    up.line("is started again");
    let line = up.line("hive 1  pid ");
    let address = line.split_whitespace().find_map(|word| word.strip_prefix("http://")).expect("an address");
    up.hives[0].1 = address.to_string();
    for key in 0..4 {
        assert_eq!(up.ask(0, &format!("GET /key-{key}")), "red\n");
        assert_eq!(
            up.ask(0, &format!("PUT /key-{key}/blue")),
            format!("key-{key} = blue (written 2 times)\n")
        );
    }
    // the parent, and with it all hives, which have no time to stop
    assert!(!up.end(Signal::KILL));
    up.all_end();

    let mut up = Up::start(&arguments);
    for key in 0..4 {
        assert_eq!(up.ask(2, &format!("GET /key-{key}")), "blue\n");
    }
    assert!(up.end(Signal::INT));
    let mode = std::fs::metadata(data.join("token")).expect("is kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else may read the token");
    let words = refused(&["up", "--hives", "1", "--data", data.to_str().expect("words")]);
    assert!(words.contains("has 3 hives, and none can be added or removed"), "{words}");
    std::fs::remove_dir_all(&data).expect("is there")
}

#[test]
fn a_hive_that_is_asked_to_end_while_it_returns_is_started_again() {
    let data = std::env::temp_dir().join(format!("beehive-cluster-asked-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&data);
    let mut up = Up::start(&["--data", data.to_str().expect("words")]);
    assert_eq!(up.ask(0, "PUT /color/red"), "color = red (written 1 times)\n");
    kill(up.hives[0].0);
    let again = up.line("is started again");
    let pid: u32 = again.split_whitespace().nth(3).and_then(|pid| pid.parse().ok()).expect("a process id");
    // before it runs, it must elect leaders with the third one
    kill(up.hives[1].0);
    std::thread::sleep(Duration::from_millis(400));
    kill_process(Pid::from_raw(pid as i32).expect("a process id"), Signal::TERM).expect("runs");
    up.line(&format!("hive 1  pid {pid}  has ended"));
    while !up.line("is started again").starts_with("hive 1  ") {}
    assert_eq!(up.ask(2, "GET /color"), "red\n");
    assert!(up.end(Signal::INT));
    std::fs::remove_dir_all(&data).expect("is there")
}

#[test]
fn without_a_majority_the_program_says_that_nothing_is_answered() {
    let mut up = Up::start(&["--hives", "2"]);
    kill(up.hives[1].0);
    let ended = up.line("has ended");
    assert!(ended.contains("1 of 2 run, which is no majority: nothing is answered any more"), "{ended}");
    assert!(up.end(Signal::TERM));
}

#[test]
fn hives_end_with_a_parent_that_is_killed() {
    let mut up = Up::start(&["--hives", "1"]);
    assert_eq!(up.ask(0, "PUT /color/red"), "color = red (written 1 times)\n");
    assert!(!up.end(Signal::KILL));
    up.all_end()
}

/// Runs a command that is refused. Returns its error message.
fn refused(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = beehive(arguments).output().expect("starts");
    assert!(!status.success());
    String::from_utf8(stderr).expect("words")
}

#[test]
fn what_cannot_be_started_is_refused_with_the_remedy() {
    let words = refused(&["up", "--hives", "0"]);
    assert!(words.contains("'0' for '--hives <NUMBER>': 0 is not in 1..=16"), "{words}");
    let words = refused(&["up", "--log", "=="]);
    assert!(words.starts_with("beehive cluster up: --log ==: "), "{words}");

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let mut child = beehive(&["hive", "--log", "error", "1", &address]);
    let mut child = child.stdin(Stdio::piped()).spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    writeln!(stdin, "a token of sixteen bytes").expect("reads");
    let mut words = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut words).expect("words");
    assert!(!child.wait().expect("ends").success());
    let begin = format!("beehive cluster: hive 1: cannot listen on {address}: ");
    assert!(words.starts_with(&begin) && words.contains("name another port"), "{words}");
}

/// The hives would refuse it, too, but only after two of them had made folders.
#[test]
fn another_number_of_hives_than_before_is_refused_and_leaves_nothing_behind() {
    let folder = std::env::temp_dir().join(format!("beehive-count-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("hives"), "3\n").expect("the number of hives");
    let data = folder.to_str().expect("text");
    let output = beehive(&["up", "--hives", "5", "--data", data]).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("has 3 hives") && text.contains("--hives 3"), "{text}");
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "something is left behind");
    std::fs::remove_dir_all(&folder).expect("the folder is removed")
}
