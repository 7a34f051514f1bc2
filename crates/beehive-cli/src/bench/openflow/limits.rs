//! Limits on the load generator's options, and on the resources that a controller can make it use.

use std::time::Duration;

/// Maximum number of emulated switches.
pub(super) const SWITCHES_MAX: u32 = 65_536;
/// Maximum number of hosts per switch. The number of a host occupies two bytes of its MAC address.
pub(super) const HOSTS_MAX: u32 = 65_535;
/// Maximum number of ports per switch. In OpenFlow 1.0, all ports must fit into one FEATURES_REPLY.
pub(super) const PORTS_MAX: u32 = 1_000;
/// Maximum number of outstanding packet-ins per switch. The slot occupies 16 bits of a buffer id and must not make the
/// id equal to `NO_BUFFER`.
pub(super) const WINDOW_MAX: u32 = 32_768;
/// Maximum number of unanswered packet-ins of a switch that keeps its socket full.
pub(super) const FULL_WINDOW: u32 = 8_191;
/// Number of packet-ins that a switch encodes at once to keep its socket full, so that they are stamped when the socket
/// takes them.
pub(super) const FULL_BURST: u32 = 128;
/// Number of reads from one switch after which a thread turns to the others.
pub(super) const READS_PER_TURN_MAX: usize = 4;
/// Interval of the echo requests of a switch that keeps its socket full.
pub(super) const ECHO_EVERY: Duration = Duration::from_secs(1);
/// Interval of the packet-ins of a bystander.
pub(super) const BYSTANDER_EVERY: Duration = Duration::from_millis(100);
/// Time after which a switch that was refused in a storm connects again.
pub(super) const STORM_RETRY: Duration = Duration::from_secs(1);
/// Maximum number of threads.
pub(super) const THREADS_MAX: usize = 256;
/// Maximum number of (source, destination) pairs per switch. The switch cycles through them.
pub(super) const PAIRS_MAX: usize = 65_536;
/// Length of the read buffer shared by all switches of a thread, in bytes.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// Maximum length of an OpenFlow message, whose length field has 16 bits.
pub(super) const MESSAGE_BYTES_MAX: usize = 65_535;
/// Maximum number of handshakes in flight per thread. It is small enough that an accept queue of 128 does not
/// overflow.
pub(super) const HANDSHAKES_AT_ONCE_MAX: usize = 32;
/// Maximum number of unsent bytes on a connection. Beyond that, the connection fails, because the controller is sending
/// requests without reading the answers.
pub(super) const UNSENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Number of announcements per host after which the controller is assumed not to answer them.
pub(super) const ANNOUNCEMENTS_MAX: u8 = 3;
/// Maximum number of distinct reasons reported for lost connections. Connections lost for further reasons are only
/// counted.
pub(super) const FAULTS_KEPT_MAX: usize = 8;
/// Maximum latency in the histogram. Slower answers are recorded with this latency.
pub(super) const LATENCY_MAX: Duration = Duration::from_secs(60);
/// Interval at which outstanding packet-ins are checked for timeouts.
pub(super) const SWEEP_EVERY: Duration = Duration::from_millis(50);
/// Time for which OpenFlow 1.3 switches wait for a table-miss flow before they send without one.
pub(super) const TABLE_MISS_WAIT: Duration = Duration::from_secs(2);
