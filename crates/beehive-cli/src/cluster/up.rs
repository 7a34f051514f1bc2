//! `beehive cluster up`: starts the hives, shows what happens to them, and ends them.

use super::Failure;
use super::hive::Report;
use crate::log_filter;
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Time that the hives have to stop. It is longer than what a hive takes.
const STOP_TIMEOUT: Duration = Duration::from_secs(6);

/// Time after which a hive that has ended is started again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Starts a cluster on this machine, each hive in a process of its own, and ends it with Ctrl-C
///
/// The hives keep the values of keys. Each has a copy of all values, and leads a part of them (its colonies). As long as more than
/// half of the hives run, the others take over what a dead one has led, and nothing that was answered is lost.
///
/// With --data, each hive keeps what it knows in a folder: one that has ended is started again and returns, and a cluster that was
/// ended goes on where it was. Without it, state is in memory: it is gone when the cluster ends, and a hive that has ended does not
/// return. The hives listen on free ports of the loopback address, and know each other by a random token. They also end if this
/// program is killed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLE)]
pub(crate) struct UpArgs {
    /// Number of hives; an odd one, because the loss of one of three and of one of four is survived alike
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=16))]
    hives: u32,

    /// Folder in which each hive gets a folder of its own for its state; it is created if it does not exist
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Log filter of the hives, which log to standard error: warn, or beehive_raft=debug, for example; the steps of the consensus
    /// protocol are logged only if the filter names `openraft`
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    log: String,
}

const EXAMPLE: &str = "\
Try this in another terminal, with the addresses and process ids that `beehive cluster up` prints:
  curl -X PUT http://127.0.0.1:40001/color/red     write through hive 1
  curl http://127.0.0.1:40002/color                read through hive 2
  kill -9 PID                                      kill hive 1
  curl http://127.0.0.1:40002/color                hive 2 or 3 has taken over";

/// News of a hive, by its position.
enum Event {
    Report(usize, Report),
    Ended(usize, std::io::Result<ExitStatus>),
    /// It is time to start the hive again.
    Again(usize),
}

/// A hive, as its parent knows it.
struct HiveProcess {
    pid: u32,
    /// While it is open, the hive runs.
    stdin: Option<ChildStdin>,
    http: Option<SocketAddr>,
    leads: Option<(usize, usize)>,
    has_ended: bool,
    /// Whether it is about to be started again.
    returns: bool,
}

/// The hives, and what they have told.
struct Hives {
    all: Vec<HiveProcess>,
    /// Whether all of them have started.
    are_there: bool,
    /// Their addresses for each other.
    addresses: Vec<String>,
    token: String,
    log: String,
    /// The folder that contains theirs.
    data: Option<PathBuf>,
    /// A hive says something at most ten times a second, so the channel needs no bound.
    told: mpsc::UnboundedSender<Event>,
    events: mpsc::UnboundedReceiver<Event>,
}

/// Runs a cluster until SIGINT or SIGTERM.
pub(super) fn run(arguments: &UpArgs) -> Result<(), Failure> {
    log_filter::filter(&arguments.log).map_err(|error| format!("--log {}: {error}", arguments.log))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: &UpArgs) -> Result<(), Failure> {
    // before anything else, so that no early signal is lost
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;

    let count = arguments.hives;
    let survives = (count - 1) / 2;
    let advice = if count.is_multiple_of(2) { format!(", as {} do", count - 1) } else { String::new() };
    say(&format!("starting {count} hives, which survive the loss of {survives}{advice}"));
    let mut hives = Hives::start(arguments)?;
    let outcome = loop {
        tokio::select! {
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
            Some(event) = hives.events.recv() => {
                if let Err(why) = hives.take(event) {
                    break Err(why);
                }
            }
        }
    };
    tokio::select! {
        () = hives.stop() => {}
        // whoever is impatient asks twice
        _ = interrupt.recv() => {}
    }
    hives.kill();
    outcome.inspect(|()| say("all hives have ended"))
}

/// Prints a line. A closed pipe ends nothing.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

impl Hives {
    /// Starts the processes.
    fn start(arguments: &UpArgs) -> Result<Hives, Failure> {
        if let Some(data) = &arguments.data {
            check_count(data, arguments.hives)?
        }
        let free: Vec<TcpListener> =
            (0..arguments.hives).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
        let addresses: Vec<String> =
            free.iter().map(|socket| Ok(socket.local_addr()?.to_string())).collect::<std::io::Result<_>>()?;
        // if another program takes one of the ports now, the hive says so and does not start
        drop(free);
        let token = match &arguments.data {
            Some(data) => kept_token(data)?,
            None => token()?,
        };

        let (told, events) = mpsc::unbounded_channel();
        let (all, data) = (Vec::new(), arguments.data.clone());
        let mut hives =
            Hives { all, are_there: false, addresses, token, log: arguments.log.clone(), data, told, events };
        for at in 0..hives.addresses.len() {
            let process = hives.start_one(at)?;
            hives.all.push(process)
        }
        Ok(hives)
    }

    /// Starts the process of a hive.
    fn start_one(&self, at: usize) -> Result<HiveProcess, Failure> {
        let number = at + 1;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["cluster", "hive", "--log", &self.log]);
        if let Some(data) = &self.data {
            command.arg("--data").arg(data.join(format!("hive-{number}")));
        }
        command.arg(number.to_string()).args(&self.addresses);
        // Ctrl-C is for the parent, which then stops the hives
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start hive {number}: {error}"))?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a hive has no pipes".into());
        };
        // if the hive has ended already, its end says so
        let _ = writeln!(stdin, "{}", self.token);
        let (pid, told) = (child.id(), self.told.clone());
        let thread = std::thread::Builder::new().name(format!("hive {number}"));
        thread.spawn(move || listen(at, child, stdout, &told))?;
        Ok(HiveProcess { pid, stdin: Some(stdin), http: None, leads: None, has_ended: false, returns: false })
    }

    /// Takes what has happened, and shows it.
    ///
    /// # Errors
    ///
    /// Returns an error if a hive has ended before all were there.
    fn take(&mut self, event: Event) -> Result<(), Failure> {
        let at = match event {
            Event::Report(at, report) => {
                match report {
                    Report::Runs(address) => self.all[at].http = Some(address),
                    Report::Leads(colonies, all) => self.all[at].leads = Some((colonies, all)),
                }
                at
            }
            Event::Ended(at, status) => return self.ended(at, status),
            Event::Again(at) => {
                self.all[at] = self.start_one(at)?;
                say(&format!("hive {}  pid {}  is started again", at + 1, self.all[at].pid));
                return Ok(());
            }
        };
        if self.are_there {
            say(&self.line(at))
        } else if self.all.iter().all(|hive| hive.leads.is_some()) {
            self.are_there = true;
            say(&self.overview())
        }
        Ok(())
    }

    /// A hive has ended. If it has a folder, it is started again soon, unless it failed before it ran: then it has said why.
    fn ended(&mut self, at: usize, status: std::io::Result<ExitStatus>) -> Result<(), Failure> {
        // a hive that is asked to end while it starts has not failed
        let was_ended = status.as_ref().is_ok_and(|status| status.success() || status.signal().is_some());
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let (number, pid) = (at + 1, self.all[at].pid);
        self.all[at].has_ended = true;
        if !self.are_there {
            return Err(format!("hive {number} has not started ({how})").into());
        }
        say(&format!("hive {number}  pid {pid}  has ended ({how}); {}", self.majority()));
        self.all[at].returns = self.data.is_some() && (was_ended || self.all[at].http.is_some());
        if self.all.iter().all(|hive| hive.has_ended && !hive.returns) {
            return Err("no hive runs any more".into());
        }
        if self.all[at].returns {
            let told = self.told.clone();
            tokio::spawn(async move {
                tokio::time::sleep(AGAIN_AFTER).await;
                // fails if the parent no longer listens
                let _ = told.send(Event::Again(at));
            });
        }
        Ok(())
    }

    /// Says how many hives run, and what that means.
    fn majority(&self) -> String {
        let (all, run) = (self.all.len(), self.all.iter().filter(|hive| !hive.has_ended).count());
        match run > all / 2 {
            true => format!("{run} of {all} run, and take over"),
            false if self.data.is_some() => {
                format!("{run} of {all} run, which is no majority: nothing is answered until others return")
            }
            false => format!(
                "{run} of {all} run, which is no majority: nothing is answered any more, and what was in memory is lost when you \
                 start again"
            ),
        }
    }

    /// Describes a hive.
    fn line(&self, at: usize) -> String {
        let hive = &self.all[at];
        let mut line = format!("hive {}  pid {}", at + 1, hive.pid);
        if let Some(address) = hive.http {
            // writing to a string does not fail
            let _ = write!(line, "  http://{address}");
        }
        if let Some((colonies, all)) = hive.leads {
            let _ = write!(line, "  leads {colonies} of {all} colonies");
        }
        line
    }

    /// Describes all hives, and says what to try.
    fn overview(&self) -> String {
        let mut text = String::new();
        for at in 0..self.all.len() {
            text += &self.line(at);
            text.push('\n')
        }
        let (first, last) = (&self.all[0], &self.all[self.all.len() - 1]);
        if let (Some(writes), Some(reads)) = (first.http, last.http) {
            let _ = write!(
                text,
                "  write:     curl -X PUT http://{writes}/color/red\n  read:      curl http://{reads}/color\n  kill one:  kill -9 {}\n  \
                 Ctrl-C ends all",
                first.pid
            );
        }
        text
    }

    /// Ends the hives, and waits until they have ended, for a limited time.
    async fn stop(&mut self) {
        self.all.iter_mut().for_each(|hive| hive.stdin = None);
        let ended = async {
            while self.all.iter().any(|hive| !hive.has_ended) {
                if let Some(Event::Ended(at, _)) = self.events.recv().await {
                    self.all[at].has_ended = true
                }
            }
        };
        // those that are late are killed
        let _ = tokio::time::timeout(STOP_TIMEOUT, ended).await;
    }

    /// Kills the hives that have not ended.
    fn kill(&self) {
        for hive in self.all.iter().filter(|hive| !hive.has_ended) {
            if let Some(pid) = i32::try_from(hive.pid).ok().and_then(Pid::from_raw) {
                // fails if it has just ended
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Passes on what a hive says, and how it has ended.
fn listen(at: usize, mut child: Child, stdout: ChildStdout, told: &mpsc::UnboundedSender<Event>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if let Ok(report) = line.parse() {
            // fails if the parent no longer listens
            let _ = told.send(Event::Report(at, report));
        }
    }
    let _ = told.send(Event::Ended(at, child.wait()));
}

/// Checks that a folder has a cluster of this many hives, or none yet: the hives of a cluster are fixed. A start that is refused later,
/// by the hives, would have made folders of hives that are none.
fn check_count(data: &Path, hives: u32) -> Result<(), Failure> {
    let file = data.join("hives");
    std::fs::create_dir_all(data)
        .map_err(|error| format!("cannot create the folder {}: {error}", data.display()))?;
    match std::fs::read_to_string(&file) {
        Ok(found) if found.trim() == hives.to_string() => Ok(()),
        Ok(found) => Err(format!(
            "the cluster in {} has {} hives, and none can be added or removed: start it with --hives {}, or name another folder",
            data.display(),
            found.trim(),
            found.trim()
        )
        .into()),
        // the folders of hives are older than this file, or it is lost: the hives check their own
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && data.join("token").exists() => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => std::fs::write(&file, format!("{hives}\n"))
            .map_err(|error| format!("cannot write {}: {error}", file.display()).into()),
        Err(error) => Err(format!("cannot read {}: {error}", file.display()).into()),
    }
}

/// Returns the join token in a folder, or puts a new one there. The seed of a new cluster is derived from its token, so a cluster of
/// which only some hives have started must go on with the same one.
fn kept_token(data: &Path) -> Result<String, Failure> {
    let file = data.join("token");
    let failed = |doing: &str, error: std::io::Error| format!("cannot {doing} {}: {error}", file.display());
    std::fs::create_dir_all(data)
        .map_err(|error| format!("cannot create the folder {}: {error}", data.display()))?;
    match std::fs::read_to_string(&file) {
        Ok(token) => return Ok(token.trim().to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("read", error).into()),
    }
    let (token, new) = (token()?, data.join("token.new"));
    let _ = std::fs::remove_file(&new);
    let mut options = std::fs::OpenOptions::new();
    let written = options.write(true).create_new(true).mode(0o600).open(&new).and_then(|mut file| {
        writeln!(file, "{token}")?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&new, &file)).map_err(|error| failed("write", error))?;
    Ok(token)
}

/// Returns a random join token.
fn token() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
