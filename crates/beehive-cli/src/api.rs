//! The JSON types of `/api/v1`. The controller serves them, and the commands that query it parse them. The OpenAPI
//! description is generated from their doc comments.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer to `GET /api/v1/switches`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Switches {
    /// Connections of switches, including auxiliary ones.
    pub(crate) switches: Vec<Switch>,
}

/// A connection of a switch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Switch {
    /// Datapath id, 16 hexadecimal digits; `null` before the switch has reported it.
    pub(crate) switch: Option<String>,
    /// IP address and port from which the switch connects.
    pub(crate) address: String,
    /// Protocol and version, such as `OpenFlow 1.3`.
    pub(crate) protocol: String,
    /// Whether this is an auxiliary connection.
    pub(crate) auxiliary: bool,
    /// Whether the handshake is complete.
    pub(crate) ready: bool,
    /// Seconds since the switch connected.
    pub(crate) connected_seconds: u64,
    /// Number of ports.
    pub(crate) ports: usize,
    /// Number of ports that are up.
    pub(crate) ports_up: usize,
    /// Number of packet-ins.
    pub(crate) packet_ins: u64,
    /// Number of packet-ins that were dropped because the hive was overloaded.
    pub(crate) packet_ins_shed: u64,
    /// Number of packet-outs.
    pub(crate) packet_outs: u64,
    /// Number of flows that were sent to the switch.
    pub(crate) flows_installed: u64,
    /// Number of errors that the switch reported.
    pub(crate) errors: u64,
}

/// The answer to `GET /api/v1/ports`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Ports {
    /// Ports, sorted by switch and number.
    pub(crate) ports: Vec<Port>,
}

/// A port of a switch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Port {
    /// Datapath id of the switch.
    pub(crate) switch: String,
    /// Port number, or `local`.
    pub(crate) port: String,
    /// Name of the port.
    pub(crate) name: String,
    /// MAC address of the port.
    pub(crate) address: String,
    /// Whether the port is enabled and has a link.
    pub(crate) up: bool,
}

/// The answer to `GET /api/v1/links`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Links {
    /// Links, sorted by switch and port.
    pub(crate) links: Vec<Link>,
}

/// A link between two switches.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Link {
    /// Datapath id of the switch at one end.
    pub(crate) switch: String,
    /// Port of that switch.
    pub(crate) port: String,
    /// Datapath id of the switch at the other end.
    pub(crate) other_switch: String,
    /// Port of that switch.
    pub(crate) other_port: String,
    /// Whether probes arrive in both directions. A link that works in only one direction is not used.
    pub(crate) both_ways: bool,
    /// Whether the link is part of the spanning tree along which packets are flooded.
    pub(crate) flooded: bool,
}

/// The answer to `GET /api/v1/hosts`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Hosts {
    /// Hosts, sorted by switch, VLAN and MAC address.
    pub(crate) hosts: Vec<Host>,
    /// Whether the list was cut off at its maximum length. Query one switch for the rest.
    pub(crate) truncated: bool,
}

/// A host.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Host {
    /// MAC address.
    pub(crate) address: String,
    /// VLAN id; `null` if untagged.
    pub(crate) vlan: Option<u16>,
    /// Datapath id of the switch that the host is attached to.
    pub(crate) switch: String,
    /// Port of the switch that the host is attached to.
    pub(crate) port: String,
    /// IP addresses that the host has announced, the most recently announced one last.
    pub(crate) internet_addresses: Vec<String>,
}

/// The answer to `GET /api/v1/flows`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Flows {
    /// Flows, sorted by switch, and within a switch by descending priority.
    pub(crate) flows: Vec<Flow>,
    /// Flows that switches refused recently.
    pub(crate) refused: Vec<Refused>,
    /// Switches that did not report their flows in time.
    pub(crate) unread: Vec<String>,
    /// Whether the list was cut off at its maximum length. Query one switch for the rest.
    pub(crate) truncated: bool,
}

/// Result of comparing an installed flow with the intended one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FlowState {
    /// Installed as intended.
    Intended,
    /// Installed with a timeout. Its app is responsible for it, and it is not one of the intended flows.
    Soft,
    /// Intended, but not installed.
    Missing,
    /// A flow with the same priority and match, but otherwise not as intended, is installed. The installed flow is shown.
    Different,
    /// Installed by this controller, but no longer intended.
    Stray,
    /// Installed by another controller, and left unchanged.
    Foreign,
    /// Intended, but the switch has not reported whether the flow is installed.
    Unknown,
}

impl FlowState {
    /// Returns whether the flow is installed because an app wants it.
    pub(crate) fn is_wanted(self) -> bool {
        matches!(self, FlowState::Intended | FlowState::Soft)
    }

    /// Returns whether the installed flow differs from the intended
    /// one. Flows of other controllers do not count as drift.
    pub(crate) fn is_drift(self) -> bool {
        !self.is_wanted() && self != FlowState::Foreign
    }

    /// Returns the name of the state for tables.
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

/// An installed or intended flow.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Flow {
    /// Datapath id of the switch.
    pub(crate) switch: String,
    /// Result of comparing the installed flow with the intended one.
    pub(crate) state: FlowState,
    /// App that installed the flow; `null` for flows of other controllers.
    pub(crate) app: Option<String>,
    /// Type of the message that caused the flow, if known.
    pub(crate) cause: Option<String>,
    /// Number of the flow table.
    pub(crate) table: u8,
    /// Priority. Among the flows that match a packet, the one with the highest priority applies.
    pub(crate) priority: u16,
    /// Match, such as `in_port=1,eth_dst=02:00:00:00:00:01`; empty if the flow matches every packet.
    pub(crate) matching: String,
    /// Actions, such as `output:2` or `drop`.
    pub(crate) actions: String,
    /// Idle timeout in seconds; 0 means none.
    pub(crate) idle_s: u16,
    /// Hard timeout in seconds; 0 means none.
    pub(crate) hard_s: u16,
    /// Seconds since the flow was installed; `null` if it is not installed.
    pub(crate) age_s: Option<u32>,
    /// Number of packets that matched.
    pub(crate) packets: u64,
    /// Number of bytes that matched.
    pub(crate) bytes: u64,
    /// Cookie in hexadecimal; `null` if the flow is not installed.
    pub(crate) cookie: Option<String>,
    /// Reason why the flow is missing, different or unknown.
    pub(crate) why: Option<String>,
    /// The flow in the syntax of `ovs-ofctl add-flow`; `null` if it was not requested or cannot be expressed.
    pub(crate) ofctl: Option<String>,
}

/// A flow that a switch refused.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Refused {
    /// Datapath id of the switch.
    pub(crate) switch: String,
    /// Age in seconds.
    pub(crate) seconds_ago: u64,
    /// App that wanted the flow.
    pub(crate) app: Option<String>,
    /// Type of the message that caused the flow, if known.
    pub(crate) cause: Option<String>,
    /// Priority of the flow, if the refused flow is known.
    pub(crate) priority: Option<u16>,
    /// Match of the flow, if the refused flow is known.
    pub(crate) matching: Option<String>,
    /// OpenFlow error type and code, such as `flow_mod_failed: TABLE_FULL`.
    pub(crate) why: String,
}

/// The answer to `POST /api/v1/flows/verify`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Verified {
    /// Result of the comparison for each switch that reported its flows.
    pub(crate) switches: Vec<Reading>,
    /// Switches that did not report their flows in time.
    pub(crate) unread: Vec<String>,
}

/// Result of reconciling the flows of a switch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Reading {
    /// Datapath id of the switch.
    pub(crate) switch: String,
    /// Number of flows that were installed as intended.
    pub(crate) kept: u64,
    /// Number of soft flows that were left unchanged or passed to the apps that adopt them.
    pub(crate) soft: u64,
    /// Number of missing or different flows that were installed.
    pub(crate) installed: u64,
    /// Number of flows of this controller that were not intended and were removed.
    pub(crate) withdrawn: u64,
    /// Number of flows of other controllers, which were left unchanged.
    pub(crate) foreign: u64,
}

/// The answer to `GET /api/v1/dead-letters`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct DeadLetters {
    /// Dead letters that are stored, oldest first.
    pub(crate) letters: Vec<Letter>,
    /// Number of dead letters since the start.
    pub(crate) total: u64,
    /// Number of dead letters that were evicted by later ones.
    pub(crate) dropped: u64,
}

/// A dead letter: a message that could not be handled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Letter {
    /// Number by which the dead letter is resent or discarded.
    pub(crate) number: u64,
    /// Age in seconds.
    pub(crate) seconds_ago: u64,
    /// App that failed to handle the message.
    pub(crate) app: String,
    /// Handler that failed.
    pub(crate) handler: String,
    /// Type of the message.
    pub(crate) message: String,
    /// Whether the message was stored and therefore can be resent.
    pub(crate) can_be_sent_again: bool,
    /// Encoded length of the message in bytes; `null` if it was not stored.
    pub(crate) bytes: Option<usize>,
    /// Kind of the error: `panicked`, `unmapped` (the handler accessed a cell outside its map), `limit` (a limit of the
    /// platform was exceeded), or `aborted` (the message crashed the process).
    pub(crate) error_kind: String,
    /// Description of the error.
    pub(crate) error: String,
    /// Id of the causal chain, 16 hexadecimal digits. Log lines contain it, too.
    pub(crate) chain: String,
    /// Number of hops from the external message that started the chain.
    pub(crate) hops: u16,
    /// Sender of the message.
    pub(crate) sender: String,
    /// Message as JSON, truncated if it is long.
    pub(crate) words: String,
}

/// The answer to `POST /api/v1/dead-letters/resend`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Resent {
    /// Numbers of the dead letters that were resent and removed.
    pub(crate) resent: Vec<u64>,
    /// Dead letters that cannot be resent. They remain stored.
    pub(crate) not_resent: Vec<NotResent>,
}

/// A dead letter that cannot be resent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct NotResent {
    /// Number of the dead letter.
    pub(crate) number: u64,
    /// Reason.
    pub(crate) why: String,
}

/// The answer to `DELETE /api/v1/dead-letters`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Discarded {
    /// Numbers of the dead letters that were discarded.
    pub(crate) discarded: Vec<u64>,
}

/// The answer to `POST /api/v1/reload`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Reloaded {
    /// Apps whose settings have changed.
    pub(crate) apps: Vec<String>,
    /// Keys of `[controller]` whose values differ from those in use. They take effect at the next start.
    pub(crate) at_next_start: Vec<String>,
    /// Apps that have settings in the file but are not running.
    pub(crate) without_effect: Vec<String>,
}

/// The answer to a request that failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Failed {
    /// Error code and message.
    pub(crate) error: Failure,
}

/// Reason why a request failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Failure {
    /// Code for programs.
    pub(crate) code: FailureCode,
    /// Message for people.
    pub(crate) message: String,
}

/// Reason why a request failed, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureCode {
    /// The parameters of the request are invalid.
    BadRequest,
    /// The switch is not connected.
    UnknownSwitch,
    /// No dead letter has this number.
    UnknownLetter,
    /// The app that answers this query is not running.
    AppNotRunning,
    /// The request comes from a web page (it has an `Origin` header).
    ForeignOrigin,
    /// The request lacks the bearer token, or has a wrong one.
    Unauthorized,
    /// The request has a body. No endpoint accepts one.
    UnexpectedBody,
    /// The configuration file has an error. Nothing was changed.
    BadConfiguration,
    /// The controller was started without a configuration file.
    NoConfiguration,
    /// No endpoint has this path.
    UnknownPath,
    /// The endpoint does not support this method.
    WrongMethod,
    /// The `Host` header is not one of the names that the controller serves.
    UnknownHost,
    /// Too many requests are in flight.
    Busy,
    /// The controller is stopping or overloaded.
    Unavailable,
    /// An app answered this request with an error, or failed while it handled the request. The log and the dead
    /// letters of the controller have the details.
    Internal,
    /// An app did not answer in time. It is unknown whether the app has handled the request.
    Timeout,
}
