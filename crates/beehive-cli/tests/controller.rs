//! The controller as a program: it starts without a flag too many, says what is wrong, and ends when told to.

use beehive_of::any::{Features, Port, PortName};
use beehive_of::{Frame, MacAddress, PortNo, Version};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn beehive(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beehive"));
    command
        .arg("controller")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts one that is expected to end by itself.
fn refused(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = beehive(arguments).output().expect("starts");
    let words = String::from_utf8(stderr).expect("words");
    assert!(!status.success(), "{arguments:?} was accepted: {words}");
    words
}

/// A controller on ports of its own, killed when dropped.
struct Running {
    child: Child,
    switches: String,
    http: String,
}

impl Running {
    fn start(more: &[&str]) -> Running {
        let mut arguments = vec!["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        arguments.extend(more);
        let mut child = beehive(&arguments).spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut line = || lines.next().expect("says where it listens").expect("words");
        assert!(line().contains("runs learning-switch"));
        let switches = line().rsplit(' ').next().expect("an address").to_string();
        let http =
            line().trim().trim_start_matches("http://").split('/').next().expect("an address").to_string();
        Running { child, switches, http }
    }

    fn get(&self, path: &str, host: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.http).expect("connects");
        stream.write_all(request.as_bytes()).expect("asks");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answers");
        answer
    }

    /// Sends a signal; returns how it ended, how long that took, and what it logged.
    fn end(mut self, signal: Signal) -> (bool, Duration, String) {
        let began = Instant::now();
        kill_process(Pid::from_child(&self.child), signal).expect("is running");
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(5), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut log = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut log).expect("words");
        (status.success(), began.elapsed(), log)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // it has ended already, except when a test failed
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is set up, or nearly: the controller has asked for features.
fn greeted(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).expect("says hello");
    let mut answers = [0; 24];
    stream.read_exact(&mut answers).expect("is answered");
    assert_eq!(answers[16..20], [1, 5, 0, 8]);
    stream
}

#[test]
fn sigterm_and_sigint_end_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let controller = Running::start(&[]);
        let _switch = greeted(&controller.switches);
        let _idle = TcpStream::connect(&controller.http).expect("connects");
        let (success, took, log) = controller.end(signal);
        assert!(success, "{log}");
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[test]
fn a_connection_without_a_word_is_a_debug_line() {
    let controller = Running::start(&[]);
    drop(TcpStream::connect(&controller.switches).expect("connects"));
    drop(greeted(&controller.switches));
    std::thread::sleep(Duration::from_millis(200));
    let (_, _, log) = controller.end(Signal::TERM);
    assert!(!log.contains("without a word"), "{log}");
    let controller = Running::start(&["--log", "debug"]);
    drop(TcpStream::connect(&controller.switches).expect("connects"));
    std::thread::sleep(Duration::from_millis(200));
    let (_, _, log) = controller.end(Signal::TERM);
    assert!(log.contains("without a word"), "{log}");
}

#[test]
fn a_port_that_is_taken_is_named_with_a_remedy() {
    let controller = Running::start(&[]);
    let words = refused(&["--listen", &controller.switches, "--http", "off"]);
    assert!(words.contains(&format!("cannot listen on {}", controller.switches)), "{words}");
    assert!(words.contains("another program does") && words.contains("ss -ltnp"), "{words}");
    let words = refused(&["--listen", "127.0.0.1:0", "--http", &controller.http]);
    assert!(words.contains(&controller.http), "{words}");
}

#[test]
fn what_is_not_known_is_refused() {
    let file = std::env::temp_dir().join(format!("beehive-controller-{}.toml", std::process::id()));
    let with = |text: &str| {
        std::fs::write(&file, text).expect("writes");
        refused(&["--config", file.to_str().expect("a name"), "--listen", "127.0.0.1:0", "--http", "off"])
    };
    assert!(with("[controller]\nlissten = []\n").contains("did you mean `listen`?"));
    assert!(with("[apps.learning-swich]\n").contains("did you mean `learning-switch`?"));
    let place = format!("{}: [apps.learning-switch]: ", file.display());
    let words = with("[apps.learning-switch]\nage = 5\n");
    assert!(words.contains(&format!("{place}there is no key `age`; did you mean `age_s`?")), "{words}");
    let words = with("[apps.learning-switch]\nage_s = 3\n");
    assert!(
        words.contains(&format!("{place}3 is out of range: it can be 4 to 131070, in `age_s`")),
        "{words}"
    );
    let words =
        with("[controller]\napps = [\"firewall\"]\n[[apps.firewall.rules]]\naction = \"deny\"\nfrm = 5\n");
    assert!(words.contains("[apps.firewall]: there is no key `frm`; did you mean `from`?"), "{words}");
    let words = with("[controller]\nidle_s = 5\napps = []\n");
    assert!(words.contains("there is no key `idle_s`"), "{words}");
    let words = with("[controller]\napps = []\n");
    assert!(words.contains(&format!("{}: [controller]: apps = [] names none", file.display())), "{words}");
    std::fs::remove_file(&file).expect("was written");
    assert!(refused(&["--app", "hubb"]).contains("did you mean `hub`?"));
    assert!(refused(&["--listen", "6653"]).contains("127.0.0.1:6653"));
    assert!(refused(&["--log", "=="]).contains("--log"));
    assert!(refused(&["--log", "warning"]).contains("--log warning: there is no such level"));
}

#[test]
fn http_is_for_those_who_are_meant() {
    assert!(refused(&["--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"]).contains("--http-insecure"));
    let controller = Running::start(&["--http-host", "sdn.example"]);
    let _switch = greeted(&controller.switches);
    for host in ["localhost", "127.0.0.1:80", "sdn.example"] {
        assert!(controller.get("/health", host).starts_with("HTTP/1.1 200"), "{host}");
    }
    assert!(controller.get("/health", "evil.example").starts_with("HTTP/1.1 421"));
    assert!(controller.get("/nothing", "localhost").starts_with("HTTP/1.1 404"));
    let metrics = controller.get("/metrics", "localhost");
    assert!(metrics.contains("text/plain; version=0.0.4"));
    assert!(
        metrics
            .contains("# TYPE beehive_switch_packet_ins_total counter\nbeehive_switch_packet_ins_total 0\n")
    );
    assert!(metrics.contains("\nbeehive_connections 1\n"), "{metrics}");
    let status = controller.get("/api/v1/status", "localhost");
    let body = status.split("\r\n\r\n").nth(1).expect("a body");
    let json: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(json["switches"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["hive"]["apps"][1]["name"], "learning-switch");
    assert!(controller.end(Signal::TERM).0);
}

/// Runs another command of the program to its end.
fn told(arguments: &[&str]) -> (bool, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_beehive")).args(arguments).output().expect("starts");
    let words = |bytes| String::from_utf8(bytes).expect("words");
    (status.success(), words(stdout), words(stderr))
}

#[test]
fn top_and_provenance_tell_what_a_running_controller_does() {
    let controller = Running::start(&[]);
    let load = ["bench", "openflow", "--controller", &controller.switches, "--switches", "2", "--macs", "10"];
    let (done, _, words) =
        told(&[&load[..], &["--mode", "throughput", "--of", "1.3", "--seconds", "1"]].concat());
    assert!(done, "{words}");
    let (done, top, words) = told(&["top", "--http", &controller.http]);
    assert!(done, "{words}");
    assert!(top.contains("learning-switch::packet_in") && top.contains("outside"), "{top}");
    let (done, top, words) = told(&["top", "--http", &controller.http, "--json", "--most", "1"]);
    assert!(done, "{words}");
    let top: serde_json::Value = serde_json::from_str(&top).expect("JSON");
    assert_eq!(
        (top["bees"].as_array().map(Vec::len), top["pairs"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );
    assert!(top["handlers"][0]["messages"].as_u64().is_some_and(|n| n > 100), "{top}");
    let (done, causes, words) = told(&["provenance", "--http", &controller.http]);
    assert!(done, "{words}");
    assert!(causes.contains("all PacketOut come from learning-switch upon PacketIn"), "{causes}");
    // the load has ended: nothing happens while it is watched
    let (done, causes, _) = told(&["provenance", "--http", &controller.http, "--seconds", "1", "--json"]);
    let causes: serde_json::Value = serde_json::from_str(&causes).expect("JSON");
    assert!(
        done && causes["causes"].as_array().is_some_and(|all| all.iter().all(|c| c["answer"] == false)),
        "{causes}"
    );
    assert!(controller.end(Signal::TERM).0);
}

#[test]
fn a_controller_that_is_not_there_is_said_with_a_remedy() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("an address").to_string();
    drop(socket);
    for command in ["top", "provenance"] {
        let (done, _, words) = told(&[command, "--http", &address]);
        assert!(!done && words.contains(&address) && words.contains("--http"), "{words}");
    }
}

#[test]
fn whoever_asks_a_controller_heeds_the_environment() {
    let controller = Running::start(&[]);
    for command in ["top", "provenance", "switches", "ports", "flows"] {
        let mut asker = Command::new(env!("CARGO_BIN_EXE_beehive"));
        let Output { status, stderr, .. } =
            asker.arg(command).env("BEEHIVE_HTTP", &controller.http).output().expect("starts");
        assert!(status.success(), "{command}: {}", String::from_utf8_lossy(&stderr));
    }
    assert!(controller.end(Signal::TERM).0);
}

#[test]
fn maps_are_shown_without_a_controller() {
    let (done, maps, _) = told(&["maps", "--app", "hub"]);
    assert!(done && maps.starts_with("hub\n") && maps.contains("stateless"), "{maps}");
    let (done, maps, _) = told(&["maps", "--json"]);
    let maps: serde_json::Value = serde_json::from_str(&maps).expect("JSON");
    assert!(done && maps.as_array().is_some_and(|apps| apps.len() >= 3), "{maps}");
}

/// A switch of OpenFlow 1.0 that is set up, has two ports and tells no flows.
fn joined(address: &str, datapath: u64) -> TcpStream {
    let mut stream = greeted(address);
    let port = |n: u8| Port::new(PortNo(n.into()), MacAddress([2, 9, 0, 0, 0, n]), PortName::from("eth"));
    let ports = [port(1), port(2)];
    let features = Features {
        datapath_id: datapath,
        buffers: 0,
        tables: 1,
        auxiliary_id: 0,
        capabilities: Default::default(),
        actions: 0,
        ports: ports.as_slice().into(),
    };
    let mut out = bytes::BytesMut::new();
    features.encode_into(Version::V1_0, 2, &mut out).expect("features");
    stream.write_all(&out).expect("says features");
    let mut received = Vec::new();
    // the barrier of the set-up, then the question about flows
    for (asked, answer) in [(18, 19), (16, 17)] {
        let xid = loop {
            if let Ok(Some((frame, length))) = Frame::split(&received) {
                let (kind, xid) = (frame.header().message_type, frame.xid());
                received.drain(..length);
                if kind == asked {
                    break xid;
                }
                continue;
            }
            let mut some = [0; 1024];
            let count = stream.read(&mut some).expect("is told");
            assert!(count > 0, "the connection is over");
            received.extend_from_slice(&some[..count]);
        };
        let body: &[u8] = if answer == 17 { &[0, 1, 0, 0] } else { &[] };
        let head = [&[1, answer, 0, 8 + body.len() as u8], &xid.to_be_bytes()[..], body].concat();
        stream.write_all(&head).expect("answers");
    }
    stream
}

/// Runs another subcommand on a running controller: how it ended, and what it printed.
fn tell(controller: &Running, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beehive"))
        .args(arguments)
        .args(["--http", &controller.http])
        .output()
        .expect("starts");
    let words = |bytes| String::from_utf8(bytes).expect("words");
    (output.status.code(), words(output.stdout), words(output.stderr))
}

#[test]
fn switches_and_ports_are_listed() {
    let controller = Running::start(&[]);
    let _switch = joined(&controller.switches, 0x2a);
    let (code, table, _) = tell(&controller, &["switches"]);
    let lines: Vec<_> = table.lines().collect();
    assert_eq!((code, lines.len()), (Some(0), 2), "{table}");
    assert!(lines[0].starts_with("SWITCH") && lines[1].starts_with("000000000000002a "), "{table}");
    assert!(lines[1].contains("OpenFlow 1.0  ready"), "{table}");
    let (_, text, _) = tell(&controller, &["ports", "--json", "--switch", "2a"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let expected = serde_json::json!({
        "switch": "000000000000002a", "port": "2", "name": "eth", "address": "02:09:00:00:00:02", "up": true
    });
    assert_eq!((json["ports"].as_array().map(Vec::len), &json["ports"][1]), (Some(2), &expected));
    let (code, _, words) = tell(&controller, &["ports", "--switch", "2b"]);
    assert_eq!(code, Some(1));
    assert!(words.contains("there is no switch 000000000000002b"), "{words}");
}

#[test]
fn a_switch_that_does_not_tell_its_flows_is_named() {
    let controller = Running::start(&[]);
    let _switch = joined(&controller.switches, 7);
    let (code, table, words) = tell(&controller, &["flows"]);
    assert_eq!(code, Some(0), "{words}");
    assert!(table.contains("0000000000000007 did not tell its flows in time"), "{table}");
}

#[test]
fn requests_that_are_wrong_are_told_so() {
    let controller = Running::start(&[]);
    let code = |answer: &str| -> String {
        let body = answer.split("\r\n\r\n").nth(1).expect("a body");
        let json: serde_json::Value = serde_json::from_str(body).expect("JSON");
        json["error"]["code"].as_str().expect("a code").to_string()
    };
    for (path, status, name) in [
        ("/api/v1/flows?switch=zz", "400", "bad_request"),
        ("/api/v1/flows?swich=1", "400", "bad_request"),
        ("/api/v1/ports?switch=1", "404", "unknown_switch"),
        ("/api/v1/flows?switch=1", "404", "unknown_switch"),
    ] {
        let answer = controller.get(path, "localhost");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
        assert_eq!(code(&answer), name, "{path}");
    }
    let post = |origin: &str| {
        let head = "POST /api/v1/flows/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n";
        controller.ask(&format!("{head}{origin}Connection: close\r\n\r\n"))
    };
    assert!(post("").starts_with("HTTP/1.1 200"));
    let refused = post("Origin: http://127.0.0.1:8653\r\n");
    assert!(refused.starts_with("HTTP/1.1 403") && code(&refused) == "foreign_origin", "{refused}");
    assert!(controller.get("/api/v1/flows/verify", "localhost").starts_with("HTTP/1.1 405"));
    let nobody = refused_by_nobody();
    assert!(nobody.contains("no controller answers at 127.0.0.1:1"), "{nobody}");
}

fn refused_by_nobody() -> String {
    let arguments = ["switches", "--http", "127.0.0.1:1"];
    let output = Command::new(env!("CARGO_BIN_EXE_beehive")).args(arguments).output().expect("starts");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("words")
}

#[test]
fn what_no_app_knows_is_said_with_what_to_do() {
    let controller = Running::start(&[]);
    for (path, app) in [("/api/v1/links", "discovery"), ("/api/v1/hosts", "hosts")] {
        let answer = controller.get(path, "localhost");
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(
            answer.contains("\"app_not_running\"") && answer.contains(&format!("--app {app}")),
            "{answer}"
        );
        let answer = controller.get(&format!("{path}?switch=xyz"), "localhost");
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    assert!(controller.end(Signal::TERM).0);
}
