//! `beehive bench openflow`: measures any OpenFlow controller with emulated switches.
//!
//! The conductor (this file) moves worker threads through the stages of a run. A [`worker`] owns the sockets and the
//! poll loop of some of the switches. [`switch`] is a switch's protocol without I/O, [`window`] tracks outstanding
//! packet-ins, [`frame`] builds the hosts' packets, and [`wire`] encodes OpenFlow independently of the controller's
//! codec. [`storm`] keeps the times at which switches are connected and set up.

mod cpu_time;
mod frame;
mod limits;
mod options;
mod report;
mod stage;
mod storm;
mod switch;
mod tally;
mod window;
mod wire;
mod worker;

#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) use options::OpenflowArgs;
use options::Plan;
use report::{Observed, Report, grouped};
use stage::{Shared, Stage};
use worker::{POLL_INTERVAL, Worker, WorkerResult};

/// The reason why there is no result, as a message for the user.
#[derive(Debug)]
enum Failure {
    /// The address cannot be resolved, or does not accept connections.
    Unreachable { controller: String, why: String },
    /// Some switches did not complete their handshake in time.
    Handshake { ready: u32, switches: u32, waited: Duration, faults: Vec<String> },
    /// All switches lost their connections.
    AllDisconnected { faults: Vec<String> },
    /// The system refused to create a thread or a poll instance, polling failed, or a thread panicked.
    System(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = match self {
            Self::Unreachable { controller, why } => {
                return write!(
                    f,
                    "cannot reach a controller at {controller}: {why}\nIs the controller running, and does it listen on this address?"
                );
            }
            Self::System(why) => return f.write_str(why),
            Self::Handshake { ready, switches, waited, faults } => {
                write!(
                    f,
                    "{ready} of {switches} switches finished the handshake (HELLO, FEATURES_REQUEST) within {:.1} s",
                    waited.as_secs_f64()
                )?;
                faults
            }
            Self::AllDisconnected { faults } => {
                f.write_str("all switches lost their connections")?;
                faults
            }
        };

        faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))?;
        if faults.iter().any(|fault| fault.contains("refused")) {
            f.write_str("\nIs the controller running, and does it listen on this address?")?;
        }
        if faults.iter().any(|fault| fault.contains("os error 24")) {
            f.write_str("\nEach switch needs a file descriptor here and in the controller: raise the limit with `ulimit -n`.")?;
        }

        Ok(())
    }
}

/// Runs the benchmark and prints its result.
pub(crate) fn run(args: OpenflowArgs) -> ExitCode {
    // each switch needs a file descriptor; if there are too few, the faults say so
    crate::controller::raise_descriptors();
    let report = match measure(&args, &mut io::stderr()) {
        Ok(report) => report,
        Err(failure) => {
            eprintln!("beehive bench openflow: {failure}");
            return ExitCode::FAILURE;
        }
    };
    for warning in report.warnings(&args) {
        eprintln!("beehive bench openflow: note: {warning}");
    }
    let text = if args.json {
        serde_json::to_string(&report).unwrap_or_default() + "\n"
    } else {
        report.to_string()
    };
    // a closed pipe (`| head`) is not a failure
    let _ = io::stdout().write_all(text.as_bytes());
    if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the benchmark, reporting to `progress`.
fn measure(args: &OpenflowArgs, progress: &mut dyn Write) -> Result<Report, Failure> {
    let plan = Arc::new(Plan::new(args, resolve(args)?, RandomState::new().build_hasher().finish() as u32));
    let threads = args.threads.min(args.switches as usize);
    // bystanders have a thread of their own, because the others are busy with full sockets
    let shared = Arc::new(Shared::new(threads + usize::from(args.bystanders > 0)));
    let workers = start(args, &plan, &shared, threads)?;
    let (timeout, observed) = (plan.timeout, Observed::default());
    let mut conductor = Conductor { args, timeout, shared: &shared, progress, observed };
    let led = conductor.lead();
    let mut observed = conductor.observed;
    shared.enter(Stage::Stop);

    let mut results = Vec::with_capacity(threads);
    for worker in workers {
        let result =
            worker.join().map_err(|_| Failure::System("a thread of the load generator panicked".into()))?;
        results.push(result.map_err(|error| Failure::System(format!("polling failed: {error}")))?);
    }

    led?;
    observed.switches_lost = shared.failed();
    observed.faults = shared.faults();
    Ok(Report::new(args, &plan, &mut results, observed))
}

/// Resolves the address of the controller.
fn resolve(args: &OpenflowArgs) -> Result<SocketAddr, Failure> {
    let unreachable = |why: String| Failure::Unreachable { controller: args.controller.clone(), why };
    let addresses: Vec<_> =
        args.controller.to_socket_addrs().map_err(|error| unreachable(error.to_string()))?.collect();
    match addresses.as_slice() {
        [] => Err(unreachable("the name has no address".into())),
        [address] => Ok(*address),
        // a name such as localhost can have several addresses, so takes the first one that accepts a connection
        several => {
            let mut last = String::new();
            for address in several {
                match TcpStream::connect_timeout(address, args.connect_timeout) {
                    Ok(_) => return Ok(*address),
                    Err(error) => last = error.to_string(),
                }
            }
            Err(unreachable(last))
        }
    }
}

/// Starts the worker threads and distributes the switches among them.
fn start(
    args: &OpenflowArgs,
    plan: &Arc<Plan>,
    shared: &Arc<Shared>,
    threads: usize,
) -> Result<Vec<JoinHandle<io::Result<WorkerResult>>>, Failure> {
    let failure =
        |error: io::Error| Failure::System(format!("cannot start a thread of the load generator: {error}"));
    (0..threads + usize::from(args.bystanders > 0))
        .map(|number| {
            let switches = match number {
                _ if number < threads => (0..args.switches).skip(number).step_by(threads).collect(),
                _ => (args.switches..Plan::connections(args)).collect(),
            };
            let worker =
                Worker::new(Arc::clone(plan), Arc::clone(shared), number, switches).map_err(failure)?;
            thread::Builder::new().name(format!("switches-{number}")).spawn(|| worker.run()).map_err(failure)
        })
        .collect::<Result<_, _>>()
        .inspect_err(|_| shared.enter(Stage::Stop))
}

/// Moves the workers from one stage to the next.
struct Conductor<'a> {
    args: &'a OpenflowArgs,
    /// Time after which a packet-in counts as unanswered.
    timeout: Duration,
    shared: &'a Shared,
    progress: &'a mut dyn Write,
    observed: Observed,
}

impl Conductor<'_> {
    fn lead(&mut self) -> Result<(), Failure> {
        self.connect()?;
        self.announce()?;
        if !self.args.warmup.is_zero() {
            self.shared.enter(Stage::WarmUp);
            self.watch("warm-up", self.args.warmup)?;
        }

        self.measure()?;
        self.shared.enter(Stage::Drain);
        // workers notice the new stage within POLL_INTERVAL, and report outstanding packet-ins with their next sweep
        thread::sleep(3 * POLL_INTERVAL + limits::SWEEP_EVERY);

        let begun = Instant::now();
        while self.shared.sum(|p| &p.outstanding) > 0 && begun.elapsed() < self.timeout && self.alive() > 0 {
            thread::sleep(POLL_INTERVAL);
        }

        Ok(())
    }

    /// Returns the number of switches that have not lost their connection.
    fn alive(&self) -> u32 {
        Plan::connections(self.args).saturating_sub(self.shared.failed())
    }

    fn report(&mut self, words: fmt::Arguments<'_>) {
        // if standard error is closed, the run continues
        let _ = writeln!(self.progress, "{words}");
    }

    fn connect(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut reported = begun;
        let switches = Plan::connections(self.args);
        loop {
            let ready = self.shared.sum(|p| &p.ready);
            if ready == switches && self.shared.failed() == 0 {
                break;
            }

            if self.shared.failed() > 0 || begun.elapsed() > self.args.connect_timeout {
                let faults = self.shared.faults();
                return Err(Failure::Handshake { ready, switches, waited: begun.elapsed(), faults });
            }

            if reported.elapsed() >= Duration::from_secs(1) {
                reported = Instant::now();
                self.report(format_args!("connecting: {ready} of {switches} switches ready"));
            }

            thread::sleep(POLL_INTERVAL / 5);
        }

        let connected = begun.elapsed();
        // with OpenFlow 1.3, a controller installs the table-miss flow shortly after the handshake; 1.0 does not need one
        while self.shared.sum(|p| &p.table_miss) < self.alive()
            && begun.elapsed() < connected + limits::TABLE_MISS_WAIT
        {
            thread::sleep(POLL_INTERVAL / 5);
        }

        // a controller that compares flows asks every switch for them, and one that does not asks none
        while self.args.storm
            && (1..self.alive()).contains(&self.shared.sum(|p| &p.flows_read))
            && begun.elapsed() < self.args.connect_timeout
        {
            thread::sleep(POLL_INTERVAL / 5);
        }

        self.report(format_args!("{switches} switches connected in {:.2} s", connected.as_secs_f64()));

        Ok(())
    }

    fn announce(&mut self) -> Result<(), Failure> {
        self.shared.enter(Stage::Announce);
        let begun = Instant::now();
        let mut reported = begun;
        while self.shared.sum(|p| &p.announced) < self.alive() {
            self.check_alive()?;
            if reported.elapsed() >= Duration::from_secs(1) {
                reported = Instant::now();
                let done = self.shared.sum(|p| &p.announced);
                let switches = Plan::connections(self.args);
                self.report(format_args!("announcing hosts: {done} of {switches} switches done"));
            }
            thread::sleep(POLL_INTERVAL / 5);
        }

        let hosts = f64::from(self.args.macs) * f64::from(Plan::connections(self.args));
        self.report(format_args!(
            "{} hosts announced in {:.2} s",
            grouped(hosts),
            begun.elapsed().as_secs_f64()
        ));

        Ok(())
    }

    fn check_alive(&self) -> Result<(), Failure> {
        if self.alive() > 0 { Ok(()) } else { Err(Failure::AllDisconnected { faults: self.shared.faults() }) }
    }

    fn measure(&mut self) -> Result<(), Failure> {
        let controller = || self.args.controller_pid.and_then(cpu_time::of_process);
        let generator = || cpu_time::of_process(std::process::id());
        let before = (controller(), generator());
        let begun = Instant::now();
        self.shared.enter(Stage::Measure);
        let rates = self.watch("", self.args.seconds)?;
        self.observed.elapsed = begun.elapsed();
        let spent = |after: Option<Duration>, before: Option<Duration>| after?.checked_sub(before?);
        self.observed.controller_cpu = spent(controller(), before.0);
        self.observed.generator_cpu = spent(generator(), before.1);
        self.observed.seconds = rates;

        Ok(())
    }

    /// Waits for `duration`. Reports and returns the answer rate in each second.
    fn watch(&mut self, what: &str, duration: Duration) -> Result<Vec<f64>, Failure> {
        let begun = Instant::now();
        let end = begun + duration;
        let mut rates = Vec::new();
        let (mut last, mut last_answered, mut silent_s) = (begun, self.shared.answered(), 0);
        while Instant::now() < end {
            let wake = (last + Duration::from_secs(1)).min(end);
            while Instant::now() < wake {
                self.check_alive()?;
                thread::sleep(POLL_INTERVAL.min(wake.saturating_duration_since(Instant::now())));
            }

            let (now, answered) = (Instant::now(), self.shared.answered());
            let elapsed = now.duration_since(last);
            // a short interval at the end does not give a meaningful rate
            if elapsed < Duration::from_millis(500) && !rates.is_empty() {
                break;
            }

            let rate = answered.saturating_sub(last_answered) as f64 / elapsed.as_secs_f64();
            silent_s = if answered == last_answered { silent_s + 1 } else { 0 };
            let outstanding = self.shared.sum(|p| &p.outstanding);
            let silence = if silent_s > 0 { format!(", no answer for {silent_s} s") } else { String::new() };
            let lost = match self.shared.failed() {
                0 => String::new(),
                lost => format!(", {lost} switches lost"),
            };

            let at = now.duration_since(begun).as_secs_f64();
            self.report(format_args!(
                "{what:>8}{at:>4.0} s {:>12} answered/s, {outstanding} outstanding{silence}{lost}",
                grouped(rate)
            ));
            rates.push(rate);

            (last, last_answered) = (now, answered);
        }

        Ok(rates)
    }
}
