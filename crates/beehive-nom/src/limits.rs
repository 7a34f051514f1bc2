//! Every limit of drivers and apps in one place.

use std::time::Duration;

/// Bytes of the first read of a connection; a stranger gets no more than this.
pub const READ_BYTES_FIRST: usize = 4 * 1024;

/// Bytes of the first message of a switch. A hello has 8 to a few dozen; an error in its place has some words.
pub const HELLO_BYTES_MAX: usize = 1024;

/// Bytes that one read may bring when a switch has much to say. Together with what is left of an incomplete message
/// this bounds the buffer of a connection.
pub const READ_BYTES_MAX: usize = 128 * 1024;

/// Bytes that wait for a switch that does not read, before packets to it are dropped.
pub const BACKLOG_BYTES_SOFT: usize = 1024 * 1024;

/// Bytes that wait for a switch that does not read, before commands to it wait, too, where the hive keeps them.
pub const BACKLOG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes that may wait beyond that: what a driver says by itself, most of it answers to echoes. Then the switch, which asks
/// and reads no answers, is disconnected.
pub const BACKLOG_BYTES_RESERVE: usize = 1024 * 1024;

/// How long a switch may take nothing of what waits for it, before it is disconnected.
pub const BACKLOG_STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Ports of one switch. More are not kept.
pub const PORTS_PER_NODE_MAX: usize = 16_384;

/// Parts of one description of ports.
pub const DESCRIPTION_PARTS_MAX: u32 = 1_024;

/// Packets that a switch keeps and that may be named at the same time.
pub const BUFFERS_PER_NODE_MAX: usize = 65_536;

/// Bytes of a switch's words in an error that are passed on.
pub const ERROR_TEXT_BYTES_MAX: usize = 256;

/// Events (ports, flows, errors) that a switch may bring in in a second without waiting for earlier ones to be done.
/// What goes beyond that and finds no credit ends the connection.
pub const EVENTS_UNCREDITED_PER_SECOND_MAX: u32 = 65_536;

/// Bytes of packets that wait at one driver for the hive, what is kept about each of them included.
pub const QUEUED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes that a waiting packet is held to take besides its data.
pub const QUEUED_PACKET_OVERHEAD_BYTES: usize = 192;

/// Those who may wait for the outcome of one probe of a node.
pub const CHALLENGERS_MAX: usize = 16;

/// Messages from outside that a driver may have under way: more than one large read brings, so that packets are shed
/// only when the hive is behind.
pub const CREDITS_PER_DRIVER: u32 = beehive_core::limits::CREDITS_PER_IO_BEE;

/// Bytes read in a row from one switch before others have their turn.
pub const BYTES_PER_YIELD_MAX: usize = 512 * 1024;

/// Flows of all owners that the node app keeps for one node.
pub const INTENDED_FLOWS_PER_NODE_MAX: usize = 65_536;

/// Intended flows that a switch is told of before it has confirmed any of them; the next ones wait for that. As it confirms
/// what came before a barrier while it is told more, twice as many may be under way.
pub const FLOWS_PER_BATCH_MAX: u32 = 2_048;

/// How long a switch that has joined may take to tell its flows, before it is set up without knowing them.
pub const READING_TIMEOUT: Duration = Duration::from_secs(3);

/// How long apps may take to say that they answer for soft flows in a switch that has joined and told its flows.
pub const ADOPTION_TIMEOUT: Duration = Duration::from_secs(1);

/// Between two readings of a switch's flows because commands to it were lost.
pub const REPAIR_INTERVAL: Duration = Duration::from_secs(1);

/// Readings of one switch's flows at the same time.
pub const READINGS_MAX: usize = 64;

/// Parts of one reading of flows, 64 KiB at most each.
pub const READING_PARTS_MAX: u32 = 4_096;

/// Flows sent to a switch that are remembered by the number they were sent under, so that an error can be tied to its flow.
/// Of an older one the error itself says whose it was. More would not stay in the cache of a core with many switches.
pub const SENT_FLOWS_MAX: usize = 128;

/// Refusals of flows kept for whoever asks, for each node.
pub const FAILURES_PER_NODE_MAX: usize = 64;

/// Apps that answer for soft flows at one node.
pub const ADOPTERS_PER_NODE_MAX: usize = 256;

/// Rules of a firewall. Each is asked in turn.
pub const FIREWALL_RULES_MAX: usize = 4_096;

/// Directions of conversations, open at one switch, that wait for the app behind the firewall to say where they lead.
pub const FIREWALL_PENDING_MAX: usize = 4_096;

/// Flows of one conversation at one switch: four times there and back, as where it is routed on a stick.
pub const FIREWALL_FLOWS_EACH_MAX: usize = 8;

/// LLDP frames that are looked at, for each port and second; so many come in, too, when all other packets of that port are
/// shed.
pub const PROBES_PER_PORT_MAX: u32 = 16;

/// Latest probes of a port that may still be answered: an answer to one that is older than that says nothing new.
pub const PROBES_UNANSWERED_MAX: usize = 4;

/// Directions of links of the whole network.
pub const LINKS_MAX: usize = 65_536;

/// Addresses of one switch that are watched for being on two ports at once.
pub const SIGHTINGS_PER_NODE_MAX: usize = 65_536;

/// How long an address is watched after its latest packet.
pub const SIGHTING_AGE: Duration = Duration::from_secs(10);

/// Hosts of the whole network that are forwarded to on paths; packets to others are flooded.
pub const HOSTS_MAX: usize = 1_000_000;
