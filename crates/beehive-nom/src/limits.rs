//! Defines every limit of the drivers and the apps.

use std::time::Duration;

/// Size of the first read on a connection, in bytes. Until a peer has completed the handshake, no read is larger.
pub const READ_BYTES_FIRST: usize = 4 * 1024;

/// Maximum length of the first message of a switch, in bytes. A hello has between 8 and a few dozen bytes. An error
/// that is sent instead of a hello carries a short text.
pub const HELLO_BYTES_MAX: usize = 1024;

/// Maximum size of one read from a busy switch, in bytes. Together with the remainder of an incomplete
/// message, it bounds the input buffer of a connection.
pub const READ_BYTES_MAX: usize = 128 * 1024;

/// Amount of unsent output, in bytes, above which packet-outs to a slow switch are dropped.
pub const BACKLOG_BYTES_SOFT: usize = 1024 * 1024;

/// Amount of unsent output, in bytes, above which the driver takes no more commands. The commands then wait in the
/// inbox of the driver's IO bee.
pub const BACKLOG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Amount of unsent output, in bytes, by which messages that the driver itself
/// generates (mostly echo replies) may exceed [`BACKLOG_BYTES_MAX`]. Beyond that, the
/// switch is disconnected, because it sends requests without reading the replies.
pub const BACKLOG_BYTES_RESERVE: usize = 1024 * 1024;

/// Time after which a switch is disconnected if it accepts no byte of the pending output.
pub const BACKLOG_STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of ports per switch. Ports beyond this number are ignored.
pub const PORTS_PER_NODE_MAX: usize = 16_384;

/// Maximum number of parts in one port description reply.
pub const DESCRIPTION_PARTS_MAX: u32 = 1_024;

/// Maximum number of switch-side packet buffers that are tracked per connection.
pub const BUFFERS_PER_NODE_MAX: usize = 65_536;

/// Maximum number of bytes that are used of the text in an error message from a switch.
pub const ERROR_TEXT_BYTES_MAX: usize = 256;

/// Maximum number of control events (about ports, flows and errors) per second that a switch may send while no credit
/// is free. A switch that sends more is disconnected.
pub const EVENTS_UNCREDITED_PER_SECOND_MAX: u32 = 65_536;

/// Maximum total size of the packets that one driver queues while it has no credits, in bytes. Each packet counts
/// with [`QUEUED_PACKET_OVERHEAD_BYTES`] in addition to its data.
pub const QUEUED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Number of bytes that a queued packet is assumed to occupy in addition to its data.
pub const QUEUED_PACKET_OVERHEAD_BYTES: usize = 192;

/// Maximum number of connections that wait for the outcome of a probe of one node.
pub const CHALLENGERS_MAX: usize = 16;

/// Number of messages from the switch that a driver can have in flight in the hive. This is more than the number of
/// messages in one large read, so packets are shed only when the hive is behind.
pub const CREDITS_PER_DRIVER: u32 = beehive_core::limits::CREDITS_PER_IO_BEE;

/// Number of bytes that a driver reads from its switch before it yields to other tasks.
pub const BYTES_PER_YIELD_MAX: usize = 512 * 1024;

/// Maximum number of intended flows that the node app keeps for one node, summed over all owners.
pub const INTENDED_FLOWS_PER_NODE_MAX: usize = 65_536;

/// Maximum number of soft flows that the node app remembers while it reads the flows of one node. If more soft flows
/// are sent during the read, it withdraws no flows; the next read, within a minute, does.
pub const RENEWED_FLOWS_PER_NODE_MAX: usize = 4_096;

/// Maximum number of intended flows that have been sent to a switch but are not yet confirmed. Further flows wait.
/// Because a barrier confirms only the flows sent before it, up to twice as many flows can be in flight.
pub const FLOWS_PER_BATCH_MAX: u32 = 2_048;

/// Time within which a switch that has joined must report its flows. If it does not, the switch is set up as if its
/// flows were unknown.
pub const READING_TIMEOUT: Duration = Duration::from_secs(3);

/// Time within which apps can adopt their soft flows after a switch has joined and reported its flows.
pub const ADOPTION_TIMEOUT: Duration = Duration::from_secs(1);

/// Minimum time between two reads of a switch's flows if lost commands cause both.
pub const REPAIR_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of concurrent reads of one switch's flows.
pub const READINGS_MAX: usize = 64;

/// Maximum number of parts in one flow statistics reply; each part has at most 64 KiB.
pub const READING_PARTS_MAX: u32 = 4_096;

/// Number of recently sent flows that are remembered by transaction id so that an error can be attributed to its
/// flow. For an older flow, only the owner is known, from the cookie that the error quotes. More entries would not
/// stay in the CPU cache of a core that serves many switches.
pub const SENT_FLOWS_MAX: usize = 128;

/// Maximum number of refused flows per node that are kept for inspection.
pub const FAILURES_PER_NODE_MAX: usize = 64;

/// Maximum number of apps that adopt soft flows at one node.
pub const ADOPTERS_PER_NODE_MAX: usize = 256;

/// Maximum number of firewall rules. They are evaluated in order.
pub const FIREWALL_RULES_MAX: usize = 4_096;

/// Maximum number of directions of open conversations, per switch, for which the forwarding app has not installed a
/// flow yet.
pub const FIREWALL_PENDING_MAX: usize = 4_096;

/// Maximum number of flows per conversation at one switch: four for each of the two directions, which suffices for a
/// router on a stick.
pub const FIREWALL_FLOWS_EACH_MAX: usize = 8;

/// Maximum number of LLDP frames that are evaluated per port and second. The same number is admitted without a credit
/// while the other packets of the port are shed.
pub const PROBES_PER_PORT_MAX: u32 = 16;

/// Number of recent probes of a port that can still be answered. An answer to an older probe is ignored.
pub const PROBES_UNANSWERED_MAX: usize = 4;

/// Maximum number of link directions in the network.
pub const LINKS_MAX: usize = 65_536;

/// Maximum number of addresses per switch that the loop guard checks for packets from two ports at once.
pub const SIGHTINGS_PER_NODE_MAX: usize = 65_536;

/// Time for which an address continues to be checked after its latest packet.
pub const SIGHTING_AGE: Duration = Duration::from_secs(10);

/// Maximum number of hosts in the network that get flows along shortest paths. Packets to other hosts are
/// flooded.
pub const HOSTS_MAX: usize = 1_000_000;
