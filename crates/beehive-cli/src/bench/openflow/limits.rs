//! The generator's limits: what a run may ask for, and what a controller may do to it.

use std::time::Duration;

/// Emulated switches in one run.
pub(super) const SWITCHES_MAX: u32 = 65_536;
/// Hosts per switch: their number is two bytes of the MAC address.
pub(super) const HOSTS_MAX: u32 = 65_535;
/// Ports per switch: OpenFlow 1.0 has all of them in one FEATURES_REPLY.
pub(super) const PORTS_MAX: u32 = 1_000;
/// Outstanding packet-ins per switch: the place in the window is 16 bits of a buffer id, and 0xffff means none.
pub(super) const WINDOW_MAX: u32 = 32_768;
/// Threads of the generator.
pub(super) const THREADS_MAX: usize = 256;
/// Different (source, destination) pairs that one switch goes through before it begins to_repeat.
pub(super) const PAIRS_MAX: usize = 65_536;
/// Bytes taken from a socket at once, shared by all switches of a thread.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// The longest OpenFlow message: its length field has 16 bits.
pub(super) const MESSAGE_BYTES_MAX: usize = 65_535;
/// Handshakes under way at once per thread, so that a listen backlog of 128 does not overflow.
pub(super) const HANDSHAKES_AT_ONCE_MAX: usize = 32;
/// Bytes waiting for a socket before a switch stops answering requests (a controller that asks and never reads).
pub(super) const UNSENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Times a host is announced before the generator believes that the controller does not answer announcements.
pub(super) const ANNOUNCEMENTS_MAX: u8 = 3;
/// How many different reasons of lost connections are kept; the rest is only counted.
pub(super) const FAULTS_KEPT_MAX: usize = 8;
/// Longest latency that is told apart; slower ones count as this.
pub(super) const LATENCY_MAX: Duration = Duration::from_secs(60);
/// How often outstanding packet-ins are looked through for lost ones.
pub(super) const SWEEP_EVERY: Duration = Duration::from_millis(50);
/// How long 1.3 switches wait for a table-miss flow before they send without one.
pub(super) const TABLE_MISS_WAIT: Duration = Duration::from_secs(2);
