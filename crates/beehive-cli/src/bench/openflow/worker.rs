//! A worker thread of the load generator: runs the sockets and the poll loop of some of the switches.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::limits::{
    HANDSHAKES_AT_ONCE_MAX, MESSAGE_BYTES_MAX, READ_BYTES, READS_PER_TURN_MAX, SWEEP_EVERY, UNSENT_BYTES_MAX,
};
use super::options::Plan;
use super::stage::{Shared, Stage};
use super::storm::{Arrival, Retries};
use super::switch::{Fault, Load, Switch};
use super::tally::Tally;
use super::wire::Version;

/// Maximum time that a worker sleeps before it checks the stage of the run.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time after which an unanswered announcement is repeated.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// One worker's measurement.
#[derive(Debug)]
pub(super) struct WorkerResult {
    /// Counters of the measurement, including its packet-ins lost during the drain.
    pub(super) tally: Tally,
    /// Duration of the measurement.
    pub(super) measured: Duration,
    /// Number of packet-ins answered during the measurement, by switch.
    pub(super) answered: Vec<u64>,
    /// Number of switches that negotiated OpenFlow 1.0.
    pub(super) on_v10: u32,
    /// Number of switches that have a table-miss flow or do not need one.
    pub(super) table_miss: u32,
    /// When each switch was connected and set up.
    pub(super) arrivals: Vec<Arrival>,
    /// Number of connections that were refused or ended before the handshake was complete, and tried again.
    pub(super) retried: u64,
    /// Number of echo requests that were still unanswered at the end of the measurement.
    pub(super) echoes_unanswered: u64,
}

/// A switch and its connection.
struct Connection {
    index: u32,
    switch: Switch,
    socket: Option<TcpStream>,
    /// Received bytes of an incomplete message.
    partial: Vec<u8>,
    /// Bytes not yet accepted by the socket.
    unsent: Vec<u8>,
    was_announced: bool,
    /// The steps that the switch has completed. They stay if it loses its connection.
    arrival: Arrival,
}

/// State of a worker thread.
pub(super) struct Worker {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    number: usize,
    poll: Poll,
    connections: Vec<Connection>,
    /// Indices of switches that have not started to connect.
    to_connect: VecDeque<usize>,
    /// Number of handshakes in flight.
    handshaking: usize,
    /// Switches that connect again, because they were refused.
    retries: Retries,
    /// Switches with more to read: this thread has turned to the others first.
    again: Vec<usize>,
    /// Read buffer. Its first [`MESSAGE_BYTES_MAX`] bytes are reserved for an incomplete message from an earlier read.
    input: Vec<u8>,
    /// Bytes sent by one switch in response to one event.
    output: Vec<u8>,
    tally: Tally,
    /// Number of answers in earlier tallies.
    answered_before: u64,
    clock: Instant,
}

impl Worker {
    /// Creates a worker for these switches.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses to create a poll instance.
    pub(super) fn new(
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        number: usize,
        switches: Vec<u32>,
    ) -> io::Result<Self> {
        let connections: Vec<_> = switches
            .into_iter()
            .map(|index| Connection {
                index,
                switch: Switch::new(&plan, index),
                socket: None,
                partial: Vec::new(),
                unsent: Vec::new(),
                was_announced: false,
                arrival: Arrival::default(),
            })
            .collect();

        Ok(Self {
            poll: Poll::new()?,
            to_connect: (0..connections.len()).collect(),
            connections,
            plan,
            shared,
            number,
            handshaking: 0,
            retries: Retries::default(),
            again: Vec::new(),
            input: vec![0; MESSAGE_BYTES_MAX + READ_BYTES],
            output: Vec::new(),
            tally: Tally::new(),
            answered_before: 0,
            clock: Instant::now(),
        })
    }

    /// Runs until the stage [`Stage::Stop`].
    ///
    /// # Errors
    ///
    /// Returns an error if polling fails. A misbehaving controller does not cause an error here.
    pub(super) fn run(mut self) -> io::Result<WorkerResult> {
        let mut events = Events::with_capacity(1_024);
        let mut stage = Stage::Connect;
        let mut swept = Instant::now();
        let mut sweeps = 0_u64;
        let mut measuring_since = swept;
        let mut measured = None;
        let mut echoes_unanswered = 0;
        let patience = if self.plan.busy_poll { Duration::ZERO } else { POLL_INTERVAL };
        loop {
            let is_busy = !self.again.is_empty()
                || (stage == Stage::Connect && self.plan.storm && !self.to_connect.is_empty());
            let patience = if is_busy { Duration::ZERO } else { patience };
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }

            let next = self.shared.stage();
            if next != stage {
                if next == Stage::Measure {
                    self.take_tally();
                    self.connections.iter_mut().for_each(|connection| connection.switch.answered = 0);
                    measuring_since = Instant::now();
                } else if stage == Stage::Measure {
                    measured = Some((self.take_tally(), measuring_since.elapsed(), self.take_answered()));
                    echoes_unanswered = self.echoes_waiting(measuring_since);
                }

                stage = next;
                if stage == Stage::Stop {
                    break;
                }

                (0..self.connections.len()).for_each(|at| self.offer(at, stage));
            }

            for at in std::mem::take(&mut self.again) {
                if let Err(fault) = self.on_readable(at, stage) {
                    self.fail(at, &fault);
                }
            }
            for event in &events {
                self.on_event(event, stage);
            }
            if stage == Stage::Connect {
                self.connect_more();
            }
            if swept.elapsed() >= SWEEP_EVERY {
                swept = Instant::now();
                sweeps += 1;
                self.sweep(stage, sweeps);
            }

            let progress = self.shared.progress(self.number);
            progress.answered.store(self.answered_before + self.tally.counts.answered, Ordering::Relaxed);
        }

        let bystanders = self.connections.iter().filter(|l| self.plan.is_bystander(l.index));
        let bystanders_waiting: usize = bystanders.map(|l| l.switch.outstanding()).sum();
        let waiting: usize =
            self.connections.iter().filter(|l| l.socket.is_some()).map(|l| l.switch.outstanding()).sum();
        let lost_late = self.tally.counts.unanswered + waiting.saturating_sub(bystanders_waiting) as u64;
        let (mut tally, measured, answered) =
            measured.unwrap_or_else(|| (self.take_tally(), Duration::ZERO, self.take_answered()));
        tally.counts.unanswered += lost_late;

        Ok(WorkerResult {
            tally,
            measured,
            answered,
            on_v10: self.connections.iter().filter(|l| l.switch.version() == Some(Version::V10)).count()
                as u32,
            table_miss: self.connections.iter().filter(|l| l.switch.has_table_miss()).count() as u32,
            arrivals: self.connections.iter().map(|l| l.arrival).collect(),
            retried: self.retries.count(),
            echoes_unanswered,
        })
    }

    /// Returns the counters and starts new ones.
    fn take_tally(&mut self) -> Tally {
        self.answered_before += self.tally.counts.answered;
        std::mem::replace(&mut self.tally, Tally::new())
    }

    /// Returns the number of answers of each switch, without bystanders.
    fn take_answered(&self) -> Vec<u64> {
        let switches = self.connections.iter().filter(|connection| !self.plan.is_bystander(connection.index));
        switches.map(|connection| connection.switch.answered).collect()
    }

    /// Returns the number of echo requests that have been unanswered since the start of the measurement or for at
    /// least as long as a packet-in may be.
    fn echoes_waiting(&self, measuring_since: Instant) -> u64 {
        let (now_ns, most) = (self.now_ns(), self.plan.timeout.min(measuring_since.elapsed()));
        let is_late = |since_ns: u64| now_ns.saturating_sub(since_ns) >= most.as_nanos() as u64;
        self.connections.iter().filter(|l| l.switch.echo_since_ns().is_some_and(is_late)).count() as u64
    }

    fn now_ns(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    /// Connects the next switches, a few at a time so that the controller's accept queue does not overflow. In a storm,
    /// connects all of them as fast as possible.
    fn connect_more(&mut self) {
        self.to_connect.extend(self.retries.due(Instant::now()));
        let at_once = if self.plan.storm { usize::MAX } else { HANDSHAKES_AT_ONCE_MAX };
        while self.handshaking < at_once
            && let Some(at) = self.to_connect.pop_front()
        {
            self.handshaking += 1;
            let connected = TcpStream::connect(self.plan.controller).and_then(|mut socket| {
                self.poll.registry().register(
                    &mut socket,
                    Token(at),
                    Interest::READABLE | Interest::WRITABLE,
                )?;
                Ok(socket)
            });

            let Some(connection) = self.connections.get_mut(at) else { continue };
            match connected {
                Ok(socket) => {
                    connection.socket = Some(socket);
                    // sent with the first writable event, which signals that the connection is established
                    let mut hello = Vec::new();
                    connection.switch.send_hello(&self.plan, &mut hello);
                    connection.unsent = hello;
                }
                Err(error) => self.fail(at, &Fault::Broken(error)),
            }
        }
    }

    fn on_event(&mut self, event: &Event, stage: Stage) {
        let at = event.token().0;
        if event.is_writable() {
            if let Err(fault) = self.on_writable(at) {
                return self.fail(at, &fault);
            }
            if self.keeps_full(stage) {
                self.offer(at, stage);
            }
        }

        if (event.is_readable() || event.is_error())
            && let Err(fault) = self.on_readable(at, stage)
        {
            self.fail(at, &fault);
        }
    }

    fn on_writable(&mut self, at: usize) -> Result<(), Fault> {
        let Some(connection) = self.connections.get_mut(at) else { return Ok(()) };
        let Some(socket) = &mut connection.socket else { return Ok(()) };
        if connection.unsent.is_empty() {
            return Ok(());
        }
        if let Some(error) = socket.take_error().map_err(Fault::Broken)? {
            return Err(Fault::Broken(error));
        }
        if connection.arrival.ready.is_none() {
            socket.set_nodelay(true).map_err(Fault::Broken)?;
        }

        let sent = write(socket, &connection.unsent)?;
        connection.unsent.drain(..sent);
        Ok(())
    }

    /// Returns whether switches keep their sockets full in this stage.
    fn keeps_full(&self, stage: Stage) -> bool {
        self.plan.is_full && stage.offer() == Load::Traffic
    }

    /// Reads until the socket is empty, because events are edge-triggered, or notes that there may be more to read.
    fn on_readable(&mut self, at: usize, stage: Stage) -> Result<(), Fault> {
        for _ in 0..READS_PER_TURN_MAX {
            let Some(connection) = self.connections.get_mut(at) else { return Ok(()) };
            let Some(socket) = &mut connection.socket else { return Ok(()) };
            let (before, fresh) = self.input.split_at_mut(MESSAGE_BYTES_MAX);
            let read = match socket.read(fresh) {
                Ok(0) => return Err(Fault::Closed),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Fault::Broken(error)),
            };

            // an incomplete message is shorter than MESSAGE_BYTES_MAX, so it fits in front of the bytes that were read
            let start = MESSAGE_BYTES_MAX - connection.partial.len();
            before[start..].copy_from_slice(&connection.partial);
            let bytes = &self.input[start..MESSAGE_BYTES_MAX + read];
            let now_ns = self.clock.elapsed().as_nanos() as u64;
            let received =
                connection.switch.receive(&self.plan, bytes, now_ns, &mut self.output, &mut self.tally);

            let used = match received {
                Ok(used) => used,
                Err(fault) => {
                    // send an OpenFlow error if the socket accepts it
                    let _ = socket.write(&self.output);
                    self.output.clear();
                    return Err(fault);
                }
            };

            connection.partial.clear();
            connection.partial.extend_from_slice(&bytes[used..]);
            if stage <= Stage::Announce {
                self.note_progress(at);
            }

            self.offer(at, stage);
            if read < READ_BYTES {
                return Ok(());
            }
        }

        self.again.push(at);
        Ok(())
    }

    /// Lets the switch fill its window, or its socket, and writes its output to the socket.
    fn offer(&mut self, at: usize, stage: Stage) {
        let keeps_full = self.keeps_full(stage);
        // packet-ins are stamped when the socket takes them, so a full socket gets no more of them
        while self.offer_once(at, stage, keeps_full) && keeps_full {}
    }

    /// Like [`Worker::offer`], for one burst. Returns whether the socket may take more.
    fn offer_once(&mut self, at: usize, stage: Stage, keeps_full: bool) -> bool {
        let now_ns = self.now_ns();
        let Some(connection) = self.connections.get_mut(at) else { return false };
        let Some(socket) = &mut connection.socket else {
            self.output.clear();
            return false;
        };
        if connection.unsent.is_empty() || !keeps_full {
            connection.switch.offer(&self.plan, stage.offer(), now_ns, &mut self.output);
        }
        if self.output.is_empty() {
            return false;
        }

        let sent = if connection.unsent.is_empty() { write(socket, &self.output) } else { Ok(0) };
        let fault = match sent {
            Ok(sent) => {
                connection.unsent.extend_from_slice(&self.output[sent..]);
                (connection.unsent.len() > UNSENT_BYTES_MAX).then_some(Fault::Overflow)
            }
            Err(fault) => Some(fault),
        };

        self.output.clear();
        let takes_more = connection.unsent.is_empty() && fault.is_none();
        if let Some(fault) = fault {
            self.fail(at, &fault);
        }
        takes_more
    }

    /// Updates the shared progress after the switch has changed.
    fn note_progress(&mut self, at: usize) {
        let Some(connection) = self.connections.get_mut(at) else { return };
        let progress = self.shared.progress(self.number);
        if connection.arrival.ready.is_none() && connection.switch.is_ready() {
            connection.arrival.ready = Some(self.shared.elapsed());
            self.handshaking = self.handshaking.saturating_sub(1);
            progress.ready.fetch_add(1, Ordering::Relaxed);
        }

        let Arrival { ready, table_miss, flows_read } = &mut connection.arrival;
        if table_miss.is_none() && ready.is_some() && connection.switch.has_table_miss() {
            *table_miss = Some(self.shared.elapsed());
            progress.table_miss.fetch_add(1, Ordering::Relaxed);
        }

        if flows_read.is_none() && connection.switch.has_flows_read() {
            *flows_read = Some(self.shared.elapsed());
            progress.flows_read.fetch_add(1, Ordering::Relaxed);
        }

        if !connection.was_announced && connection.switch.is_announced(&self.plan) {
            connection.was_announced = true;
            progress.announced.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes timed-out packet-ins and lets the switches refill their windows. The large windows of full sockets are
    /// searched only in every fourth sweep.
    fn sweep(&mut self, stage: Stage, sweeps: u64) {
        let expires = !self.plan.is_full || sweeps.is_multiple_of(4);
        let timeout = if stage == Stage::Announce { ANNOUNCEMENT_TIMEOUT } else { self.plan.timeout };
        let oldest_ns = self.now_ns().saturating_sub(timeout.as_nanos() as u64);
        let keeps_full = self.keeps_full(stage);
        let mut outstanding = 0;
        for at in 0..self.connections.len() {
            let Some(connection) = self.connections.get_mut(at) else { continue };
            if connection.socket.is_none() {
                continue;
            }
            if expires {
                connection.switch.expire(&self.plan, oldest_ns, &mut self.tally);
            }
            if keeps_full && !self.plan.is_bystander(connection.index) {
                connection.switch.ask_for_echo(self.clock.elapsed().as_nanos() as u64, &mut self.output);
            }
            outstanding += connection.switch.outstanding() as u32;
            self.note_progress(at);
            self.offer(at, stage);
        }

        self.shared.progress(self.number).outstanding.store(outstanding, Ordering::Relaxed);
    }

    /// Closes the connection of a switch and records the reason.
    fn fail(&mut self, at: usize, fault: &Fault) {
        let Some(connection) = self.connections.get_mut(at) else { return };
        if let Some(mut socket) = connection.socket.take() {
            // dropping the socket closes it, even if it cannot be deregistered
            let _ = self.poll.registry().deregister(&mut socket);
        }

        if connection.arrival.ready.is_none() {
            self.handshaking = self.handshaking.saturating_sub(1);
            if self.plan.storm && fault.may_pass() && self.shared.stage() == Stage::Connect {
                connection.switch = Switch::new(&self.plan, connection.index);
                connection.partial.clear();
                connection.unsent.clear();
                return self.retries.add(Instant::now(), at);
            }
        }
        if matches!(self.shared.stage(), Stage::WarmUp | Stage::Measure | Stage::Drain) {
            self.tally.counts.unanswered += connection.switch.outstanding() as u64;
        }

        self.shared.fail(connection.index, fault.to_string());
    }
}

/// Writes as many bytes as the socket accepts. Returns their number.
fn write(socket: &mut TcpStream, bytes: &[u8]) -> Result<usize, Fault> {
    let mut sent = 0;
    while let Some(rest) = bytes.get(sent..)
        && !rest.is_empty()
    {
        match socket.write(rest) {
            Ok(0) => return Err(Fault::Closed),
            Ok(written) => sent += written,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected => break,
                io::ErrorKind::Interrupted => {}
                _ => return Err(Fault::Broken(error)),
            },
        }
    }

    Ok(sent)
}
