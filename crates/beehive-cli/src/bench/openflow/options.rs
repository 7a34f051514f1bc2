//! The command line of `beehive bench openflow`, and the plan of a run, shared by all threads.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::frame::PacketIn;
use super::limits;
use super::wire::Version;

/// Measures an OpenFlow controller with emulated switches that send packet-ins
///
/// Emulated switches connect to a controller, announce their hosts so that the controller learns their locations, and
/// then send packets between known hosts. A packet-in counts as answered when a packet-out returns its frame, or when
/// a flow-mod or packet-out releases its buffer. A flow-mod and a packet-out for the same packet count as one answer.
///
///   throughput   every switch keeps --window packet-ins outstanding: how many can the controller answer?
///   latency      every switch keeps one packet-in outstanding: how long does an answer take?
///
/// Two options show a controller at its worst. With --window none, every switch sends as fast as its socket takes
/// packets, up to 8191 of them unanswered, so that every socket is full. Each switch then also asks for an echo every
/// second: its reply waits behind the packets. With --storm, all switches connect in one moment, as after a restart of
/// the controller, and try again after a second if they are refused.
///
/// Packets have 64 bytes. Unless --buffers is given, switches do not buffer them, so the controller must return the
/// whole packet, as with Open vSwitch. Per-second progress goes to standard error, and the result to standard
/// output.
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment, after_help = EXAMPLES)]
pub(crate) struct OpenflowArgs {
    /// Address of the controller
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6653")]
    pub(super) controller: String,

    /// Number of switches
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::SWITCHES_MAX)))]
    pub(super) switches: u32,

    /// Number of hosts (MAC addresses) per switch
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=i64::from(limits::HOSTS_MAX)))]
    pub(super) macs: u32,

    /// Number of ports per switch; hosts are spread over them
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=i64::from(limits::PORTS_MAX)))]
    pub(super) ports: u32,

    /// Quantity to measure
    #[arg(long, value_enum, default_value_t = Mode::Throughput)]
    pub(super) mode: Mode,

    /// Newest OpenFlow version of the switches; 1.3 falls back to 1.0 if the controller does not support it
    #[arg(long, value_enum, default_value_t = OpenflowVersion::V13)]
    pub(super) of: OpenflowVersion,

    /// Duration of the measurement in seconds
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(super) seconds: Duration,

    /// Duration of the warm-up before the measurement in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", default_missing_value = "3", num_args = 0..=1, value_parser = seconds_or_none)]
    pub(super) warmup: Duration,

    /// Maximum number of outstanding packet-ins per switch; `none` keeps every socket full, with up to 8191 of them
    /// [default: 128 to 2048, depending on --switches; 1 in latency mode]
    #[arg(long, value_name = "NUMBER|none", value_parser = window)]
    pub(super) window: Option<WindowSize>,

    /// Number of further switches that send a single packet-in every tenth of a second; their latencies are reported
    /// separately, and count neither for the rate nor for fairness
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(super) bystanders: u32,

    /// Connect all switches in one moment; one that is refused or disconnected tries again after a second. Reports the
    /// times until switches are connected, have a table-miss flow, and are asked for their flows
    #[arg(long)]
    pub(super) storm: bool,

    /// Buffer packets at the switch: packet-ins have a buffer id, which answers can release
    #[arg(long)]
    pub(super) buffers: bool,

    /// Print the result as one JSON object
    #[arg(long)]
    pub(super) json: bool,

    /// Number of threads of the load generator; a single one is faster than most controllers
    #[arg(long, default_value_t = 1, value_parser = threads)]
    pub(super) threads: usize,

    /// Poll for answers without sleeping: excludes the wake-up time of the load generator from latencies, but needs
    /// one core per thread
    #[arg(long)]
    pub(super) busy_poll: bool,

    /// Time after which a packet-in counts as unanswered, in seconds [default: 5; 3 with --window none]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) timeout: Option<Duration>,

    /// Time within which all switches must connect, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds)]
    pub(super) connect_timeout: Duration,

    /// Process id of the controller on this machine, to report its CPU time per answer (Linux only)
    #[arg(long, value_name = "PID")]
    pub(super) controller_pid: Option<u32>,
}

const EXAMPLES: &str = "Examples:
  beehive bench openflow                                  16 switches, 10 seconds, the controller on this machine
  beehive bench openflow --mode latency --switches 1      the latency of single answers
  beehive bench openflow --switches 1000 --json           many switches, the result as JSON
  beehive bench openflow --switches 200 --window none --bystanders 1
                                                          full sockets, and the service of a switch beside them
  beehive bench openflow --switches 1000 --storm --macs 2 --seconds 1
                                                          1000 switches that connect in the same moment
  beehive bench openflow --controller-pid $(pidof -s ovs-testcontroller)

How to read the result: `flooded` above 0 means that the controller did not learn. `generator` near 1 core per thread
means that the load generator limited the result, not the controller; give it more --threads.
Exit status: 0 if the measurement succeeded; 1 if it failed or a switch lost its connection; 2 if the command line is invalid.";

/// The quantity to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// A window of outstanding packet-ins per switch
    Throughput,
    /// One outstanding packet-in per switch
    Latency,
}

impl Mode {
    /// Returns the name used on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
        }
    }
}

/// Value of `--window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowSize {
    /// Maximum number of outstanding packet-ins.
    Packets(u32),
    /// As many as the socket takes, up to [`limits::FULL_WINDOW`].
    Full,
}

fn window(text: &str) -> Result<WindowSize, String> {
    match text.parse() {
        _ if text == "none" => Ok(WindowSize::Full),
        Ok(packets) if (1..=limits::WINDOW_MAX).contains(&packets) => Ok(WindowSize::Packets(packets)),
        _ => Err(format!("must be `none` or a number from 1 to {}", limits::WINDOW_MAX)),
    }
}

/// Value of `--of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OpenflowVersion {
    /// OpenFlow 1.0
    #[value(name = "1.0")]
    V10,
    /// OpenFlow 1.3
    #[value(name = "1.3")]
    V13,
}

/// Parses a positive number of seconds, at most one day.
fn seconds(text: &str) -> Result<Duration, String> {
    match seconds_or_none(text)? {
        Duration::ZERO => Err("must be more than 0".into()),
        duration => Ok(duration),
    }
}

/// Parses a number of seconds, at most one day; 0 is allowed.
fn seconds_or_none(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err("must be between 0 and 86400".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=limits::THREADS_MAX).contains(&n) => Ok(n),
        _ => Err(format!("must be a number from 1 to {}", limits::THREADS_MAX)),
    }
}

/// The parameters of a run, shared by all threads.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) controller: SocketAddr,
    pub(super) newest: Version,
    pub(super) hosts: u32,
    pub(super) ports: u32,
    pub(super) window: u32,
    /// Whether switches keep their sockets full (`--window none`).
    pub(super) is_full: bool,
    /// Number of switches, without bystanders. Switches with this number or a larger one are bystanders.
    pub(super) switches: u32,
    pub(super) storm: bool,
    pub(super) buffers: bool,
    pub(super) busy_poll: bool,
    pub(super) timeout: Duration,
    /// This run's random number, which is part of every stamp.
    pub(super) run: u32,
    /// (source, destination) pairs of hosts, in sending order. The two hosts in a pair are never at the same port.
    pub(super) pairs: Vec<(u16, u16)>,
    /// For each version, the template of a packet between hosts and the template of an announcement.
    templates: [[PacketIn; 2]; 2],
}

impl Plan {
    /// Returns the plan for these arguments and the resolved address of the controller.
    pub(super) fn new(args: &OpenflowArgs, controller: SocketAddr, run: u32) -> Self {
        let is_full = args.mode == Mode::Throughput && args.window == Some(WindowSize::Full);
        let window = match (args.mode, args.window) {
            (Mode::Latency, _) => 1,
            (Mode::Throughput, Some(WindowSize::Packets(packets))) => packets,
            (Mode::Throughput, Some(WindowSize::Full)) => limits::FULL_WINDOW,
            (Mode::Throughput, None) => (WINDOW_TOTAL / args.switches).clamp(WINDOW_MIN, WINDOW_ALONE),
        };
        Self {
            controller,
            newest: match args.of {
                OpenflowVersion::V10 => Version::V10,
                OpenflowVersion::V13 => Version::V13,
            },
            hosts: args.macs,
            ports: args.ports,
            window,
            is_full,
            switches: args.switches,
            storm: args.storm,
            buffers: args.buffers,
            busy_poll: args.busy_poll,
            timeout: args.timeout.unwrap_or(if is_full { TIMEOUT_FULL } else { TIMEOUT }),
            run,
            pairs: pairs(args.macs, args.ports),
            templates: [Version::V10, Version::V13]
                .map(|v| [PacketIn::unicast(v), PacketIn::announcement(v)]),
        }
    }

    /// Returns the number of emulated switches, including bystanders.
    pub(super) fn connections(args: &OpenflowArgs) -> u32 {
        args.switches + args.bystanders
    }

    /// Returns whether the switch with this number is a bystander.
    #[inline]
    pub(super) fn is_bystander(&self, switch: u32) -> bool {
        switch >= self.switches
    }

    /// Returns the template of a packet between hosts.
    #[inline]
    pub(super) fn unicast(&self, version: Version) -> &PacketIn {
        let [[v10, _], [v13, _]] = &self.templates;
        if version == Version::V10 { v10 } else { v13 }
    }

    /// Returns the template of a host announcement.
    pub(super) fn announcement(&self, version: Version) -> &PacketIn {
        let [[_, v10], [_, v13]] = &self.templates;
        if version == Version::V10 { v10 } else { v13 }
    }

    /// Returns the port of a host, counted from 1.
    #[inline]
    pub(super) fn port(&self, host: u16) -> u16 {
        port_of(host, self.ports)
    }
}

/// Default time after which a packet-in counts as unanswered.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The same for full sockets.
const TIMEOUT_FULL: Duration = Duration::from_secs(3);
/// Default number of outstanding packet-ins for all switches together, enough to keep both sides busy.
const WINDOW_TOTAL: u32 = 8_192;
/// Minimum default window of a switch.
const WINDOW_MIN: u32 = 128;
/// Maximum default window of a switch.
const WINDOW_ALONE: u32 = 2_048;

#[inline]
fn port_of(host: u16, ports: u32) -> u16 {
    (u32::from(host) % ports) as u16 + 1
}

/// Returns the pairs of hosts. Each host sends to at most sixteen
/// others. The order is shuffled, but the same in every run.
fn pairs(hosts: u32, ports: u32) -> Vec<(u16, u16)> {
    let rounds = (hosts - 1).min(16).min((limits::PAIRS_MAX as u32 / hosts).max(1));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };

    let mut pairs = Vec::with_capacity((hosts * rounds) as usize);
    for _ in 0..rounds {
        for source in 0..hosts {
            let mut destination = (source + 1 + next(u64::from(hosts) - 1) as u32) % hosts;
            // terminates, because with at least two ports and two hosts there is always a host at another port
            while port_of(destination as u16, ports) == port_of(source as u16, ports) {
                destination = (destination + 1) % hosts;
            }
            pairs.push((source as u16, destination as u16));
        }
    }

    for i in (1..pairs.len()).rev() {
        pairs.swap(i, next(i as u64 + 1) as usize);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_between_ports_and_every_host_sends() {
        for (hosts, ports) in [(2, 2), (5, 2), (100, 16), (17, 16), (65_535, 1_000)] {
            let pairs = pairs(hosts, ports);
            assert!(pairs.iter().all(|(s, d)| port_of(*s, ports) != port_of(*d, ports)), "{hosts} {ports}");
            let mut sources: Vec<_> = pairs.iter().map(|(s, _)| *s).collect();
            sources.sort_unstable();
            sources.dedup();
            assert_eq!(sources.len(), hosts as usize);
            assert!(pairs.len() <= limits::PAIRS_MAX);
        }
    }

    #[test]
    fn a_window_is_a_number_or_none() {
        assert_eq!((window("none"), window("16")), (Ok(WindowSize::Full), Ok(WindowSize::Packets(16))));
        for wrong in ["0", "None", "-1", "32769", ""] {
            assert!(window(wrong).unwrap_err().contains("`none` or a number from 1 to 32768"), "{wrong}");
        }
    }

    #[test]
    fn seconds_are_checked() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds_or_none("0"), Ok(Duration::ZERO));
        for wrong in ["0", "-1", "NaN", "inf", "1e9", "ten"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
