//! What `/api/v1` says of switches, ports, links, hosts, flows and dead letters: the same for who serves it and for who
//! asks. Its description for programs (OpenAPI) is made of these types.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer to `GET /api/v1/switches`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Switches {
    /// Connections of switches, auxiliary ones included.
    pub(crate) switches: Vec<Switch>,
}

/// A switch that is connected.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Switch {
    /// Its datapath identifier, 16 hexadecimal digits; none before it has said.
    pub(crate) switch: Option<String>,
    /// Where it called from.
    pub(crate) address: String,
    /// What it speaks.
    pub(crate) protocol: String,
    /// Whether this is one of its auxiliary connections.
    pub(crate) auxiliary: bool,
    /// Whether it is set up.
    pub(crate) ready: bool,
    /// Seconds since it connected.
    pub(crate) connected_seconds: u64,
    /// Its ports.
    pub(crate) ports: usize,
    /// Those of them that are up.
    pub(crate) ports_up: usize,
    /// Packets that came up.
    pub(crate) packet_ins: u64,
    /// Packets that came up and were dropped because the hive was behind.
    pub(crate) packet_ins_shed: u64,
    /// Packets sent out.
    pub(crate) packet_outs: u64,
    /// Flows that it was told of.
    pub(crate) flows_installed: u64,
    /// Errors that it reported.
    pub(crate) errors: u64,
}

/// The answer to `GET /api/v1/ports`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Ports {
    /// By switch and number.
    pub(crate) ports: Vec<Port>,
}

/// A port of a switch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Port {
    /// The switch.
    pub(crate) switch: String,
    /// Port number, or `local`.
    pub(crate) port: String,
    /// Its name.
    pub(crate) name: String,
    /// Its Ethernet address.
    pub(crate) address: String,
    /// Whether it is switched on and has a link.
    pub(crate) up: bool,
}

/// The answer to `GET /api/v1/links`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Links {
    /// By switch and port.
    pub(crate) links: Vec<Link>,
}

/// A cable between two switches.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Link {
    /// The switch at one end.
    pub(crate) switch: String,
    /// Its port.
    pub(crate) port: String,
    /// The switch at the other end.
    pub(crate) other_switch: String,
    /// Its port.
    pub(crate) other_port: String,
    /// Whether it works in both directions; it is not used if it does not.
    pub(crate) both_ways: bool,
    /// Whether floods go over it; over some they do not, so that none runs in a circle.
    pub(crate) flooded: bool,
}

/// The answer to `GET /api/v1/hosts`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Hosts {
    /// By switch, VLAN and address.
    pub(crate) hosts: Vec<Host>,
    /// Whether there are more flows than are told at once: ask for one switch.
    pub(crate) truncated: bool,
}

/// A host.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Host {
    /// Its Ethernet address.
    pub(crate) address: String,
    /// Its VLAN; none: untagged.
    pub(crate) vlan: Option<u16>,
    /// The switch where it is.
    pub(crate) switch: String,
    /// The port behind which it is.
    pub(crate) port: String,
    /// Its IP addresses, as it says; the latest is the last.
    pub(crate) internet_addresses: Vec<String>,
}

/// The answer to `GET /api/v1/flows`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Flows {
    /// By switch, the highest priority first.
    pub(crate) flows: Vec<Flow>,
    /// Flows that were refused lately.
    pub(crate) refused: Vec<Refused>,
    /// Switches that did not tell their flows in time.
    pub(crate) unread: Vec<String>,
    /// Whether there are more flows than are told at once: ask for one switch.
    pub(crate) truncated: bool,
}

/// How a flow that a switch has, and one that it should have, compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FlowState {
    /// It is there as it should be.
    Intended,
    /// It is there until it times out, and its app knows of it.
    Soft,
    /// It should be there and is not.
    Missing,
    /// Another one is in its place, which is what is shown.
    Different,
    /// It is this system's, and should not be there.
    Stray,
    /// It is somebody else's, and is left alone.
    Foreign,
    /// It should be there; the switch has not told whether it is.
    Unknown,
}

impl FlowState {
    /// Whether it is there because an app wants it.
    pub(crate) fn is_wanted(self) -> bool {
        matches!(self, FlowState::Intended | FlowState::Soft)
    }

    /// Whether what is there and what should be there differ. What others do with a switch is not for this system to say.
    pub(crate) fn is_drift(self) -> bool {
        !self.is_wanted() && self != FlowState::Foreign
    }

    /// As people read it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FlowState::Intended => "intended",
            FlowState::Soft => "soft",
            FlowState::Missing => "missing",
            FlowState::Different => "different",
            FlowState::Stray => "stray",
            FlowState::Foreign => "foreign",
            FlowState::Unknown => "unknown",
        }
    }
}

/// A flow.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Flow {
    /// The switch.
    pub(crate) switch: String,
    /// How it compares with what should be there.
    pub(crate) state: FlowState,
    /// The app that wants it; none: not of this system.
    pub(crate) app: Option<String>,
    /// The message that it was made for, where that is known.
    pub(crate) cause: Option<String>,
    /// The switch's table.
    pub(crate) table: u8,
    /// Which flow wins where several match: the highest.
    pub(crate) priority: u16,
    /// Which packets: `in_port=1,eth_dst=02:00:00:00:00:01`; empty: every one.
    pub(crate) matching: String,
    /// What is done with them: `output:2`; `drop`.
    pub(crate) actions: String,
    /// Seconds without a packet after which it goes; 0 is never.
    pub(crate) idle_s: u16,
    /// Seconds after which it goes; 0 is never.
    pub(crate) hard_s: u16,
    /// Seconds that it has been there; none if it is missing.
    pub(crate) age_s: Option<u32>,
    /// Packets that it took.
    pub(crate) packets: u64,
    /// Bytes that it took.
    pub(crate) bytes: u64,
    /// The switch's mark on it, in hexadecimal; none if it is missing.
    pub(crate) cookie: Option<String>,
    /// Of one that is missing or different: what became of it.
    pub(crate) why: Option<String>,
    /// The flow in the syntax of `ovs-ofctl add-flow`. `null` unless it was asked for, and for flows that cannot be expressed.
    pub(crate) ofctl: Option<String>,
}

/// A flow that a switch refused.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Refused {
    /// The switch.
    pub(crate) switch: String,
    /// Seconds since then.
    pub(crate) seconds_ago: u64,
    /// The app that wanted it.
    pub(crate) app: Option<String>,
    /// The message that it was made for, where that is known.
    pub(crate) cause: Option<String>,
    /// Its priority, if it is known which one it was.
    pub(crate) priority: Option<u16>,
    /// Its match, if it is known which one it was.
    pub(crate) matching: Option<String>,
    /// Why, in the words of the switch's protocol: `flow_mod_failed: TABLE_FULL`.
    pub(crate) why: String,
}

/// The answer to `POST /api/v1/flows/verify`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Verified {
    /// What was found, for each switch that told its flows.
    pub(crate) switches: Vec<Reading>,
    /// Switches that did not tell their flows in time.
    pub(crate) unread: Vec<String>,
}

/// A comparison of what a switch has with what it should have.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Reading {
    /// The switch.
    pub(crate) switch: String,
    /// Flows that were as they should be.
    pub(crate) kept: u64,
    /// Soft flows that were left to the app that they belong to.
    pub(crate) adopted: u64,
    /// Flows that were missing or different, and were put in place.
    pub(crate) installed: u64,
    /// Flows of this system that should not have been there, and were withdrawn.
    pub(crate) withdrawn: u64,
    /// Flows of others, which were left alone.
    pub(crate) foreign: u64,
}

/// The answer to `GET /api/v1/dead-letters`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct DeadLetters {
    /// Those that are kept, oldest first.
    pub(crate) letters: Vec<Letter>,
    /// All there were since the start.
    pub(crate) total: u64,
    /// Of these, letters that had to make room for later ones.
    pub(crate) dropped: u64,
}

/// A message that could not be handled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Letter {
    /// Its number, by which it is sent again or thrown away.
    pub(crate) number: u64,
    /// Seconds since then.
    pub(crate) seconds_ago: u64,
    /// The app that could not handle it.
    pub(crate) app: String,
    /// Its handler.
    pub(crate) handler: String,
    /// The type of the message.
    pub(crate) message: String,
    /// Whether the message itself was kept.
    pub(crate) can_be_sent_again: bool,
    /// Bytes of the message, if it was kept.
    pub(crate) bytes: Option<usize>,
    /// `panicked`, `unmapped` (a cell that is not in the map was touched), `limit`, or `aborted` (it ended the process).
    pub(crate) error_kind: String,
    /// What happened.
    pub(crate) error: String,
    /// The chain of causes that it belongs to, 16 hexadecimal digits; log lines name it, too.
    pub(crate) chain: String,
    /// Messages between the one from outside that began the chain, and this.
    pub(crate) hops: u16,
    /// Who sent it.
    pub(crate) sender: String,
    /// The message as JSON; the first part of it, if it is long.
    pub(crate) words: String,
}

/// The answer to `POST /api/v1/dead-letters/resend`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Resent {
    /// Letters whose message was sent again; they are gone.
    pub(crate) resent: Vec<u64>,
    /// Letters that cannot be sent again, and why; they are still there.
    pub(crate) not_resent: Vec<NotResent>,
}

/// A letter that cannot be sent again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct NotResent {
    /// Its number.
    pub(crate) number: u64,
    /// Why.
    pub(crate) why: String,
}

/// The answer to `DELETE /api/v1/dead-letters`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Discarded {
    /// Letters that were thrown away.
    pub(crate) discarded: Vec<u64>,
}

/// The answer to `POST /api/v1/reload`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Reloaded {
    /// Apps whose settings are others now.
    pub(crate) apps: Vec<String>,
    /// Keys of `[controller]` that are others than those in force, and take effect when the controller starts again.
    pub(crate) at_next_start: Vec<String>,
    /// Apps that the file has settings of, and that do not run.
    pub(crate) without_effect: Vec<String>,
}

/// The answer to a request that failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Failed {
    /// Why.
    pub(crate) error: Failure,
}

/// Why a request failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Failure {
    /// For programs.
    pub(crate) code: FailureCode,
    /// For people.
    pub(crate) message: String,
}

/// Why a request failed, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureCode {
    /// The request is wrong.
    BadRequest,
    /// There is no such switch.
    UnknownSwitch,
    /// There is no such dead letter.
    UnknownLetter,
    /// The app that knows does not run.
    AppNotRunning,
    /// The request came from a page on the web.
    ForeignOrigin,
    /// The request does not show the token.
    Unauthorized,
    /// The request has a body, and none has one here.
    UnexpectedBody,
    /// Something in the configuration file is wrong; all stays as it is.
    BadConfiguration,
    /// The controller runs without a configuration file.
    NoConfiguration,
    /// There is no such path.
    UnknownPath,
    /// The path is asked in another way.
    WrongMethod,
    /// This host name is not served.
    UnknownHost,
    /// Too many requests at the same time.
    Busy,
    /// The controller does not answer itself: it stops, or is far behind.
    Unavailable,
}
