//! Changes to a flow table, and notices of them.

use core::time::Duration;

use bytes::BytesMut;

use super::action::Actions;
use super::match_fields::Match;
use crate::encode::EncodeError;
use crate::port_number::PortNo;
use crate::version::Version;
use crate::{v10, v13};

/// A change to a flow table. [`FlowMod::add`] and [`FlowMod::delete`] fill in the usual values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowMod<'a> {
    /// What to do.
    pub command: FlowCommand,
    /// The table; 0 in 1.0. For deletions 0xff is all tables.
    pub table_id: u8,
    /// Which flow wins where several match: the highest.
    pub priority: u16,
    /// Seconds without a packet after which the flow goes; 0 is never.
    pub idle_timeout: u16,
    /// Seconds after which the flow goes; 0 is never.
    pub hard_timeout: u16,
    /// The controller's own mark on the flow.
    pub cookie: u64,
    /// Which bits of `cookie` restrict a modification or deletion; 0 is none. 1.3 only.
    pub cookie_mask: u64,
    /// A packet that the switch keeps, to be processed by the new flow.
    pub buffer_id: Option<u32>,
    /// Restricts deletions to flows with this output; [`PortNo::ANY`] does not.
    pub out_port: PortNo,
    /// Restricts deletions to flows with this group; `None` does not. 1.3 only.
    pub out_group: Option<u32>,
    /// Options.
    pub flags: FlowFlags,
    /// Which packets.
    pub match_fields: Match,
    /// What to do with them, at once ("apply actions" in 1.3); none drops them.
    pub actions: Actions<'a>,
    /// The table to go on in. 1.3 only.
    pub goto_table: Option<u8>,
    /// Instructions of a decoded message that have no name here; not encoded.
    pub other_instructions: u16,
}

/// What a flow modification does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum FlowCommand {
    /// Adds a flow; one of the same match and priority is replaced.
    Add = 0,
    /// Changes the actions of all flows that the match covers.
    Modify = 1,
    /// Changes the actions of the flow of the same match and priority.
    ModifyStrict = 2,
    /// Deletes all flows that the match covers.
    Delete = 3,
    /// Deletes the flow of the same match and priority.
    DeleteStrict = 4,
}

impl FlowCommand {
    #[inline]
    pub(crate) const fn from_wire(wire: u16) -> Option<Self> {
        Some(match wire {
            0 => Self::Add,
            1 => Self::Modify,
            2 => Self::ModifyStrict,
            3 => Self::Delete,
            4 => Self::DeleteStrict,
            _ => return None,
        })
    }
}

/// Options of a flow (`ofp_flow_mod_flags`), as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FlowFlags(pub u16);

impl FlowFlags {
    /// No option.
    pub const NONE: Self = Self(0);
    /// Send a flow-removed message when the flow goes.
    pub const SEND_FLOW_REMOVED: Self = Self(1);
    /// Refuse the flow if it overlaps another of the same priority.
    pub const CHECK_OVERLAP: Self = Self(2);
    /// Set the flow's counters to zero. 1.3 only; a decoded 1.0 message with this bit means an emergency flow.
    pub const RESET_COUNTS: Self = Self(4);
    /// Do not count packets. 1.3 only.
    pub const NO_PACKET_COUNTS: Self = Self(8);
    /// Do not count bytes. 1.3 only.
    pub const NO_BYTE_COUNTS: Self = Self(16);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl<'a> FlowMod<'a> {
    /// Adds a flow to table 0 that stays until it is deleted.
    pub const fn add(priority: u16, match_fields: Match, actions: Actions<'a>) -> Self {
        Self {
            command: FlowCommand::Add,
            table_id: 0,
            priority,
            idle_timeout: 0,
            hard_timeout: 0,
            cookie: 0,
            cookie_mask: 0,
            buffer_id: None,
            out_port: PortNo::ANY,
            out_group: None,
            flags: FlowFlags::NONE,
            match_fields,
            actions,
            goto_table: None,
            other_instructions: 0,
        }
    }

    /// Deletes all flows of table 0 that the match covers.
    pub const fn delete(match_fields: Match) -> Self {
        Self { command: FlowCommand::Delete, ..Self::add(0, match_fields, Actions::EMPTY) }
    }

    /// Deletes the flow of table 0 with this priority and match.
    pub const fn delete_strict(priority: u16, match_fields: Match) -> Self {
        Self { command: FlowCommand::DeleteStrict, ..Self::add(priority, match_fields, Actions::EMPTY) }
    }

    /// Appends the message.
    ///
    /// # Errors
    ///
    /// The version cannot express a field, a field lacks the one that it depends on, or the message is too long.
    #[inline]
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_flow_mod(self, xid, out),
            Version::V1_3 => v13::write_flow_mod(self, xid, out),
        }
    }
}

/// A flow that is gone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowRemoved {
    /// Which packets it was for.
    pub match_fields: Match,
    /// The controller's own mark on it.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Why it went.
    pub reason: FlowRemovedReason,
    /// Its table; 0 in 1.0.
    pub table_id: u8,
    /// How long it lived, to the nanosecond.
    pub duration: Duration,
    /// Its idle timeout in seconds.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds; 0 in 1.0, which does not tell.
    pub hard_timeout: u16,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
}

/// Why a flow is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FlowRemovedReason {
    /// No packet for its idle timeout.
    IdleTimeout,
    /// Its hard timeout passed.
    HardTimeout,
    /// The controller deleted it.
    Delete,
    /// Its group was deleted. 1.3 only.
    GroupDelete,
    /// Another reason, as on the wire.
    Other(u8),
}

impl FlowRemovedReason {
    pub(crate) const fn from_wire(wire: u8) -> Self {
        match wire {
            0 => Self::IdleTimeout,
            1 => Self::HardTimeout,
            2 => Self::Delete,
            3 => Self::GroupDelete,
            other => Self::Other(other),
        }
    }

    pub(crate) const fn wire(self) -> u8 {
        match self {
            Self::IdleTimeout => 0,
            Self::HardTimeout => 1,
            Self::Delete => 2,
            Self::GroupDelete => 3,
            Self::Other(other) => other,
        }
    }
}

impl FlowRemoved {
    /// Appends the message.
    ///
    /// # Errors
    ///
    /// The version cannot express a field.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_flow_removed(self, xid, out),
            Version::V1_3 => v13::write_flow_removed(self, xid, out),
        }
    }
}

/// A lifetime as the wire has it: whole seconds and nanoseconds.
pub(crate) fn duration_to_wire(duration: Duration) -> Result<(u32, u32), EncodeError> {
    let seconds = u32::try_from(duration.as_secs()).map_err(|_| EncodeError::Value { field: "duration" })?;
    Ok((seconds, duration.subsec_nanos()))
}
