//! Lanes: the streams of a connection. What waits in one lane does not hold up another one.

use crate::cluster::transport::Channel;
use crate::limits::wire as limits;

/// A stream of a connection.
///
/// Each channel has a lane, because a channel whose receiver is busy must hold up only itself: a hive that waits for a
/// majority serves no further proposals, and must still take the vote by which it gets one. The consensus groups have a
/// second lane for long calls, so that votes do not wait behind snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Lane {
    Detector = 0,
    Links = 1,
    Registry = 2,
    Raft = 3,
    RaftLong = 4,
}

impl Lane {
    pub(super) const COUNT: usize = 5;
    pub(super) const ALL: [Lane; Lane::COUNT] =
        [Lane::Detector, Lane::Links, Lane::Registry, Lane::Raft, Lane::RaftLong];

    /// Returns the lane of a packet or a call. An answer takes the lane of its call.
    pub(super) fn of(channel: Channel, length: usize) -> Lane {
        match channel {
            Channel::Detector => Lane::Detector,
            Channel::Links => Lane::Links,
            Channel::Registry => Lane::Registry,
            Channel::Raft if length <= limits::SMALL_BYTES_MAX => Lane::Raft,
            Channel::Raft => Lane::RaftLong,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Lane> {
        Lane::ALL.get(usize::from(number)).copied()
    }

    pub(super) fn channel(self) -> Channel {
        match self {
            Lane::Detector => Channel::Detector,
            Lane::Links => Channel::Links,
            Lane::Registry => Channel::Registry,
            Lane::Raft | Lane::RaftLong => Channel::Raft,
        }
    }

    /// Maximum length of a message in this lane.
    pub(super) fn message_bytes_max(self) -> usize {
        match self {
            Lane::Detector => limits::DETECTOR_BYTES_MAX,
            _ => limits::MESSAGE_BYTES_MAX,
        }
    }

    /// Maximum number of bytes that wait in this lane.
    pub(super) fn waiting_bytes_max(self) -> usize {
        match self {
            Lane::Detector => limits::DETECTOR_BYTES_MAX,
            _ => limits::WAITING_BYTES_MAX,
        }
    }

    /// The path of the stream.
    pub(super) fn path(self) -> &'static str {
        match self {
            Lane::Detector => "/beehive.wire/lane/0",
            Lane::Links => "/beehive.wire/lane/1",
            Lane::Registry => "/beehive.wire/lane/2",
            Lane::Raft => "/beehive.wire/lane/3",
            Lane::RaftLong => "/beehive.wire/lane/4",
        }
    }
}
