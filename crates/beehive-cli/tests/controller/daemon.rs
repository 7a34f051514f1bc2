//! Test harness: runs the controller as a process, connects switches to it, and sends HTTP requests.

use beehive_of::any::{Features, Port, PortName};
use beehive_of::{Frame, MacAddress, PortNo, Version};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Returns the command `beehive controller` with pipes for its output.
pub(crate) fn beehive(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beehive"));
    command
        .arg("controller")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a controller that must refuse its arguments. Returns its error message.
pub(crate) fn start_refused(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = beehive(arguments).output().expect("starts");
    let words = String::from_utf8(stderr).expect("words");
    assert!(!status.success(), "{arguments:?} was accepted: {words}");
    words
}

/// A running controller on free ports. It is killed when dropped.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) switches: String,
    pub(crate) http: String,
}

impl Daemon {
    /// Starts a controller with HTTP on a free port.
    pub(crate) fn start(more: &[&str]) -> Daemon {
        Daemon::with(&[&["--http", "127.0.0.1:0"], more].concat())
    }

    /// Starts a controller with the default address for HTTP.
    pub(crate) fn with(more: &[&str]) -> Daemon {
        let arguments = [&["--listen", "127.0.0.1:0"], more].concat();
        let mut child = beehive(&arguments).spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut line = || lines.next().expect("says where it listens").expect("words");
        let first = line();
        assert!(first.contains(" runs ") && first.contains("learning-switch"), "{first}");
        let switches = line().rsplit(' ').next().expect("an address").to_string();
        let http =
            line().trim().trim_start_matches("http://").split('/').next().expect("an address").to_string();
        Daemon { child, switches, http }
    }

    /// Sends a GET request with this `Host` header. Returns the whole answer.
    pub(crate) fn get(&self, path: &str, host: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }

    /// Sends a request as it is. Returns the whole answer.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.http).expect("connects");
        stream.write_all(request.as_bytes()).expect("asks");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answers");
        answer
    }

    /// Sends a signal and waits for the process. Returns whether it succeeded, how long it took, and its log.
    pub(crate) fn end(mut self, signal: Signal) -> (bool, Duration, String) {
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

impl Drop for Daemon {
    fn drop(&mut self) {
        // still running only if a test failed
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects and exchanges HELLO. Returns after the features request of the controller.
pub(crate) fn connect_greeted(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).expect("says hello");
    let mut answers = [0; 24];
    stream.read_exact(&mut answers).expect("is answered");
    assert_eq!(answers[16..20], [1, 5, 0, 8]);
    stream
}

/// Runs a command of the program. Returns whether it succeeded, its output and its errors.
pub(crate) fn run(arguments: &[&str]) -> (bool, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_beehive")).args(arguments).output().expect("starts");
    let words = |bytes| String::from_utf8(bytes).expect("words");
    (status.success(), words(stdout), words(stderr))
}

/// Connects a switch of OpenFlow 1.0 with two ports and completes its handshake. It does not answer later flow requests.
pub(crate) fn connect_switch(address: &str, datapath: u64) -> TcpStream {
    let mut stream = connect_greeted(address);
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
    // the barrier request of the handshake, then the flow statistics request
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

/// Answers echo, barrier and flow statistics requests of the controller in a thread. The switch has no flows.
pub(crate) fn answer_flow_requests(mut switch: TcpStream) {
    std::thread::spawn(move || {
        let mut head = [0; 8];
        while switch.read_exact(&mut head).is_ok() {
            let mut body = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 8];
            let xid = &head[4..];
            let answer = match switch.read_exact(&mut body).map(|()| head[1]) {
                Ok(2) => [&[1, 3, 0, 8], xid].concat(),
                Ok(16) => [&[1, 17, 0, 12], xid, &[0, 1, 0, 0]].concat(),
                Ok(18) => [&[1, 19, 0, 8], xid].concat(),
                _ => continue,
            };

            if switch.write_all(&answer).is_err() {
                return;
            }
        }
    });
}

/// Runs a client command on a running controller. Returns its exit code, its output and its errors.
pub(crate) fn run_client(controller: &Daemon, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beehive"))
        .args(arguments)
        .args(["--http", &controller.http])
        .output()
        .expect("starts");
    let words = |bytes| String::from_utf8(bytes).expect("words");
    (output.status.code(), words(output.stdout), words(output.stderr))
}

/// Splits an HTTP answer into its status and its body.
pub(crate) fn status_and_body(answer: &str) -> (String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.split(' ').nth(1).expect("a status").to_string(), body.to_string())
}

/// A temporary folder, removed when dropped.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    /// Creates an empty folder.
    pub(crate) fn new(name: &str) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("beehive-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// Writes a file with these permissions. Returns its path.
    pub(crate) fn file(&self, name: &str, text: &str, mode: u32) -> String {
        // written and renamed, as editors do, so the controller never reads half a file
        let (draft, file) = (self.0.join(format!(".{name}")), self.0.join(name));
        std::fs::write(&draft, text).expect("writes");
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(mode)).expect("is ours");
        std::fs::rename(&draft, &file).expect("is there");
        file.to_str().expect("words").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
