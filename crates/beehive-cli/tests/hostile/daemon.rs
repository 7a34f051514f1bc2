//! Runs the controller as a child process and watches its memory.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running controller on free ports. It is killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) switches: SocketAddr,
    pub(crate) http: String,
    /// Memory statistics and the thread that updates them, while memory is watched.
    watching: Option<(Arc<Memory>, JoinHandle<()>)>,
    configuration: Option<std::path::PathBuf>,
}

/// Resident memory of the process, in bytes.
#[derive(Default)]
struct Memory {
    over: AtomicBool,
    /// Memory when watching started.
    first: AtomicU64,
    /// Maximum since then.
    most: AtomicU64,
}

impl Daemon {
    pub(crate) fn start() -> Daemon {
        Daemon::with("")
    }

    /// Starts a controller with these lines in the table `[controller]`.
    pub(crate) fn with(settings: &str) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beehive"));
        command.args(["controller", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log", "error"]);
        let mut configuration = None;
        if !settings.is_empty() {
            // two tests of this process may each start a controller
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("beehive-hostile-{}-{number}.toml", std::process::id());
            let file = std::env::temp_dir().join(name);
            std::fs::write(&file, format!("[controller]\n{settings}\n")).expect("writes");
            command.arg("--config").arg(&file);
            configuration = Some(file);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut line = || lines.next().expect("says where it listens").expect("words");
        assert!(line().contains("runs learning-switch"));
        let switches = line().rsplit(' ').next().and_then(|word| word.parse().ok()).expect("an address");
        let http =
            line().trim().trim_start_matches("http://").split('/').next().expect("an address").to_string();
        Daemon { child, switches, http, watching: None, configuration }
    }

    /// Reads the resident memory of a process, in bytes.
    fn resident(process: u32) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    }

    /// Returns the number of open file descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("is running").count()
    }

    /// Starts to watch the memory of the process.
    pub(crate) fn watch_memory(&mut self) {
        let (memory, process) = (Arc::new(Memory::default()), self.child.id());
        memory.first.store(Daemon::resident(process).expect("is running"), Ordering::Relaxed);
        let watched = memory.clone();
        let thread = std::thread::spawn(move || {
            while !watched.over.load(Ordering::Relaxed) {
                watched.most.fetch_max(Daemon::resident(process).unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20))
            }
        });

        self.watching = Some((memory, thread));
    }

    /// Stops to watch. Returns the maximum growth of memory and its initial value, in bytes.
    pub(crate) fn memory_growth(&mut self) -> (u64, u64) {
        let (memory, thread) = self.watching.take().expect("is watched");
        memory.over.store(true, Ordering::Relaxed);
        thread.join().expect("watches");
        let first = memory.first.load(Ordering::Relaxed);
        (memory.most.load(Ordering::Relaxed).saturating_sub(first), first)
    }

    /// Returns a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let [value] = self.metrics([name]);
        value
    }

    /// Returns metrics without labels, as they were at the same time.
    pub(crate) fn metrics<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let mut stream = TcpStream::connect(&self.http).expect("connects");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .expect("asks");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answers");
        names.map(|name| {
            let value = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value
                .and_then(|value| value.trim().parse().ok())
                .unwrap_or_else(|| panic!("no {name} in {answer}"))
        })
    }

    /// Waits until a condition holds. Panics after `limit`.
    pub(crate) fn until(&self, what: &str, limit: Duration, mut is_so: impl FnMut(&Daemon) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < limit, "not within {limit:?}: {what}");
            std::thread::sleep(Duration::from_millis(20))
        }
    }

    /// Checks that the process still runs, ends cleanly after SIGTERM, and has logged no panic.
    pub(crate) fn end(mut self) {
        assert!(self.child.try_wait().expect("waits").is_none(), "it is not there any more");
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("is running");
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(5), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };

        let mut log = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut log).expect("words");
        assert!(status.success() && !log.contains("panicked"), "{status}: {log}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // still running only if a test failed
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(file) = &self.configuration {
            let _ = std::fs::remove_file(file);
        }
    }
}
