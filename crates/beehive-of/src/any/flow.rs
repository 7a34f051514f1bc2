//! Flow modifications and flow-removed messages.

use core::time::Duration;

use bytes::{BufMut, BytesMut};

use super::action::Actions;
use super::instructions;
use super::match_fields::Match;
use super::match_standard::write_match;
use super::{buffer_from_wire, buffer_to_wire};
use crate::encode::{EncodeError, message};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{set8, set16, set32, set64};
use crate::message::{self, Counter, GroupId};
use crate::port_number::PortNo;
use crate::schema::Writer;
use crate::version::Version;

/// A change to a flow table. [`FlowMod::add`] and [`FlowMod::delete`] fill in the usual values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowMod<'a> {
    /// The kind of change.
    pub command: FlowCommand,
    /// The table; must be 0 in 1.0. In deletions, 0xff selects all tables.
    pub table_id: u8,
    /// The priority. If several flows match a packet, the switch applies the one with the highest priority.
    pub priority: u16,
    /// Seconds without a matching packet after which the switch removes the flow; 0 disables the timeout.
    pub idle_timeout: u16,
    /// Seconds after which the switch removes the flow in any case; 0 disables the timeout.
    pub hard_timeout: u16,
    /// An opaque value that the controller chooses.
    pub cookie: u64,
    /// The bits of `cookie` to compare: a modification or deletion applies only to flows whose cookie equals
    /// `cookie` in these bits. 0 means no restriction. Since 1.1.
    pub cookie_mask: u64,
    /// A packet in the switch's buffer, to which the switch applies the new flow.
    pub buffer_id: Option<u32>,
    /// Restricts deletions to flows that output to this port; [`PortNo::ANY`] means no restriction.
    pub out_port: PortNo,
    /// Restricts deletions to flows that use this group; `None` means no restriction. Since 1.1.
    pub out_group: Option<u32>,
    /// The options.
    pub flags: FlowFlags,
    /// The packets that the flow matches.
    pub match_fields: Match,
    /// The actions that the switch applies to a matching packet ("apply actions" from 1.1 on). An empty list
    /// drops the packet.
    pub actions: Actions<'a>,
    /// The table that processes the packet next, if any. Since 1.1.
    pub goto_table: Option<u8>,
    /// Number of instructions in a decoded message that this structure does not model. Encoding fails unless
    /// it is 0.
    pub other_instructions: u16,
}

/// The kind of change that a flow modification makes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum FlowCommand {
    /// Adds a flow. It replaces a flow with the same match and priority.
    Add = 0,
    /// Changes the actions of all flows that the match covers.
    Modify = 1,
    /// Changes the actions of the flow with the same match and priority.
    ModifyStrict = 2,
    /// Deletes all flows that the match covers.
    Delete = 3,
    /// Deletes the flow with the same match and priority.
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
    /// No options.
    pub const NONE: Self = Self(0);
    /// Send a flow-removed message when the flow is removed.
    pub const SEND_FLOW_REMOVED: Self = Self(1);
    /// Refuse the flow if it overlaps another one with the same priority.
    pub const CHECK_OVERLAP: Self = Self(2);
    /// Set the flow's counters to zero. Since 1.2; in a decoded 1.0 message, this bit marks an emergency
    /// flow.
    pub const RESET_COUNTS: Self = Self(4);
    /// Do not count packets. Since 1.3.
    pub const NO_PACKET_COUNTS: Self = Self(8);
    /// Do not count bytes. Since 1.3.
    pub const NO_BYTE_COUNTS: Self = Self(16);

    /// Returns the option bits that may be encoded in `version`.
    const fn known_to(version: Version) -> Self {
        match version {
            Version::V1_0 | Version::V1_1 => Self(0b11),
            Version::V1_2 => Self(0b111),
            // Accept all bits, because later revisions may define more.
            _ => Self(u16::MAX),
        }
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl<'a> FlowMod<'a> {
    /// Creates a message that adds a flow without timeouts to table 0.
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

    /// Creates a message that deletes all flows of table 0 that the match covers.
    pub const fn delete(match_fields: Match) -> Self {
        Self { command: FlowCommand::Delete, ..Self::add(0, match_fields, Actions::EMPTY) }
    }

    /// Creates a message that deletes the flow of table 0 with this priority and match.
    pub const fn delete_strict(priority: u16, match_fields: Match) -> Self {
        Self { command: FlowCommand::DeleteStrict, ..Self::add(priority, match_fields, Actions::EMPTY) }
    }

    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express a field, a prerequisite of a match field is missing, or the
    /// message is too long.
    #[inline]
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        if version == Version::V1_0 {
            return self.encode_10(xid, out);
        }
        if !FlowFlags::known_to(version).contains(self.flags) {
            return Err(EncodeError::unsupported(version, "these flow-mod flags"));
        }

        let mut bytes = [0; 40];
        set64::<0, _>(&mut bytes, self.cookie);
        set64::<8, _>(&mut bytes, self.cookie_mask);
        set8::<16, _>(&mut bytes, self.table_id);
        set8::<17, _>(&mut bytes, self.command as u8);
        set16::<18, _>(&mut bytes, self.idle_timeout);
        set16::<20, _>(&mut bytes, self.hard_timeout);
        set16::<22, _>(&mut bytes, self.priority);
        set32::<24, _>(&mut bytes, buffer_to_wire(self.buffer_id));
        set32::<28, _>(&mut bytes, self.out_port.0);
        set32::<32, _>(&mut bytes, self.out_group.unwrap_or(GroupId::ANY.0));
        set16::<36, _>(&mut bytes, self.flags.0);
        message(out, version.wire(), FLOW_MOD, xid, |out| {
            out.put_slice(&bytes);
            let mut writer = Writer::new(version, out);
            write_match(&self.match_fields, &mut writer)?;
            instructions::write(&self.actions, self.goto_table, self.other_instructions, &mut writer)
        })
    }

    fn encode_10(&self, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let version = Version::V1_0;
        let unsupported = |field| Err(EncodeError::unsupported(version, field));

        // 1.0 does not number its tables, so in a deletion "all tables" can only mean its single table.
        let deletes = matches!(self.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        if self.table_id != 0 && !(deletes && self.table_id == 0xff) {
            return unsupported("a flow table other than 0");
        }
        if self.cookie_mask != 0 {
            return unsupported("cookie_mask");
        }
        if self.out_group.is_some() {
            return unsupported("out_group");
        }
        if !FlowFlags::known_to(version).contains(self.flags) {
            return unsupported("these flow-mod flags");
        }

        let Some(out_port) = self.out_port.to_v10() else {
            return unsupported("out_port above 0xff00");
        };
        let mut bytes = [0; 24];
        set64::<0, _>(&mut bytes, self.cookie);
        set16::<8, _>(&mut bytes, self.command as u16);
        set16::<10, _>(&mut bytes, self.idle_timeout);
        set16::<12, _>(&mut bytes, self.hard_timeout);
        set16::<14, _>(&mut bytes, self.priority);
        set32::<16, _>(&mut bytes, buffer_to_wire(self.buffer_id));
        set16::<20, _>(&mut bytes, out_port);
        set16::<22, _>(&mut bytes, self.flags.0);
        message(out, version.wire(), FLOW_MOD, xid, |out| {
            let mut writer = Writer::new(version, out);
            write_match(&self.match_fields, &mut writer)?;
            writer.put(&bytes);
            instructions::write(&self.actions, self.goto_table, self.other_instructions, &mut writer)
        })
    }

    pub(super) fn generalize(flow: &message::FlowMod<'a>, version: Version) -> Result<Self, Error> {
        let at = if version == Version::V1_0 { 56 } else { 25 };
        let command = FlowCommand::from_wire(flow.command.0)
            .ok_or_else(|| Error::new(ErrorKind::Value, Part::FlowMod, at, "flow-mod command"))?;
        let match_fields = flow.match_fields.generalize()?;
        let (actions, goto_table, other_instructions) = match version {
            Version::V1_0 => (flow.actions.reinterpret(), None, 0),
            _ => instructions::generalize(flow.instructions)?,
        };

        Ok(Self {
            command,
            table_id: flow.table_id.0,
            priority: flow.priority,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            cookie: flow.cookie,
            cookie_mask: flow.cookie_mask,
            buffer_id: buffer_from_wire(flow.buffer_id.0),
            out_port: flow.out_port,
            out_group: Some(flow.out_group.0).filter(|group| *group != GroupId::ANY.0),
            flags: FlowFlags(flow.flags.0),
            match_fields,
            actions,
            goto_table,
            other_instructions,
        })
    }
}

/// The message type, the same in every version.
const FLOW_MOD: u8 = 14;

/// A notification that the switch removed a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowRemoved {
    /// The packets that the flow matched.
    pub match_fields: Match,
    /// The cookie that the controller gave the flow.
    pub cookie: u64,
    /// The flow's priority.
    pub priority: u16,
    /// The reason why the switch removed the flow.
    pub reason: FlowRemovedReason,
    /// The flow's table; 0 in 1.0.
    pub table_id: u8,
    /// The lifetime of the flow.
    pub duration: Duration,
    /// The flow's idle timeout in seconds; 0 if it had none.
    pub idle_timeout: u16,
    /// The flow's hard timeout in seconds; 0 if it had none. Always 0 in 1.0 and 1.1, whose messages do not
    /// carry it.
    pub hard_timeout: u16,
    /// Number of packets that matched the flow.
    pub packet_count: u64,
    /// Number of bytes in those packets.
    pub byte_count: u64,
}

/// The reason why a flow was removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FlowRemovedReason {
    /// No packet matched the flow within the idle timeout.
    IdleTimeout,
    /// The hard timeout expired.
    HardTimeout,
    /// A controller deleted the flow.
    Delete,
    /// The group that the flow uses was deleted. Since 1.1.
    GroupDelete,
    /// The meter that the flow uses was deleted. Since 1.4.
    MeterDelete,
    /// The switch evicted the flow to free space. Since 1.4.
    Eviction,
    /// Another reason, given by its number on the wire.
    Other(u8),
}

impl FlowRemovedReason {
    pub(crate) const fn from_wire(wire: u8) -> Self {
        match wire {
            0 => Self::IdleTimeout,
            1 => Self::HardTimeout,
            2 => Self::Delete,
            3 => Self::GroupDelete,
            4 => Self::MeterDelete,
            5 => Self::Eviction,
            other => Self::Other(other),
        }
    }

    pub(crate) const fn wire(self) -> u8 {
        match self {
            Self::IdleTimeout => 0,
            Self::HardTimeout => 1,
            Self::Delete => 2,
            Self::GroupDelete => 3,
            Self::MeterDelete => 4,
            Self::Eviction => 5,
            Self::Other(other) => other,
        }
    }
}

impl FlowRemoved {
    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express a field.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let last = match version {
            Version::V1_0 => 2,
            Version::V1_1 | Version::V1_2 | Version::V1_3 => 3,
            _ => 5,
        };

        if self.reason.wire() > last {
            return Err(EncodeError::unsupported(version, "this flow-removed reason"));
        }

        let (duration_sec, duration_nsec) = duration_to_wire(self.duration)?;
        let mut flow = message::FlowRemoved {
            cookie: self.cookie,
            priority: self.priority,
            reason: message::FlowRemovedReason(self.reason.wire()),
            table_id: message::TableId(self.table_id),
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            match_fields: message::Match::Any(&self.match_fields),
            ..Default::default()
        };

        if version < Version::V1_5 {
            (flow.duration_sec, flow.duration_nsec) = (duration_sec, duration_nsec);
            (flow.packet_count, flow.byte_count) = (self.packet_count, self.byte_count);
            return message::Message::FlowRemoved(flow).encode_into(version, xid, out);
        }

        let values = counters_to_wire(duration_sec, duration_nsec, self.packet_count, self.byte_count);
        let counters = counter_list(&values);
        flow.counters = message::FlowCounters((&counters).into());
        message::Message::FlowRemoved(flow).encode_into(version, xid, out)
    }

    pub(super) fn generalize(flow: &message::FlowRemoved<'_>, version: Version) -> Result<Self, Error> {
        let mut counted =
            Counted::of(flow.duration_sec, flow.duration_nsec, flow.packet_count, flow.byte_count);
        if version >= Version::V1_5 {
            counted = Counted::from_list(&flow.counters)?;
        }

        Ok(Self {
            match_fields: flow.match_fields.generalize()?,
            cookie: flow.cookie,
            priority: flow.priority,
            reason: FlowRemovedReason::from_wire(flow.reason.0),
            table_id: flow.table_id.0,
            duration: counted.duration,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            packet_count: counted.packet_count,
            byte_count: counted.byte_count,
        })
    }
}

/// A flow's counters.
pub(super) struct Counted {
    pub(super) duration: Duration,
    pub(super) packet_count: u64,
    pub(super) byte_count: u64,
}

impl Counted {
    pub(super) fn of(seconds: u32, nanoseconds: u32, packet_count: u64, byte_count: u64) -> Self {
        Self { duration: Duration::new(u64::from(seconds), nanoseconds), packet_count, byte_count }
    }

    /// Reads the counter list of 1.5; counters that the switch does not report are 0.
    pub(super) fn from_list(list: &message::FlowCounters<'_>) -> Result<Self, Error> {
        let get = |number| Ok(list.get(number)?.unwrap_or(0));
        let duration = get(DURATION)?;
        Ok(Self::of((duration >> 32) as u32, duration as u32, get(PACKET_COUNT)?, get(BYTE_COUNT)?))
    }
}

/// Counter numbers of 1.5 (`ofp_oxs_ofb_stat_fields`).
const DURATION: u8 = 0;
const PACKET_COUNT: u8 = 4;
const BYTE_COUNT: u8 = 5;

/// Encodes the values of the counters that every flow has from 1.5 on.
pub(super) fn counters_to_wire(seconds: u32, nanoseconds: u32, packets: u64, bytes: u64) -> [[u8; 8]; 3] {
    [
        (u64::from(seconds) << 32 | u64::from(nanoseconds)).to_be_bytes(),
        packets.to_be_bytes(),
        bytes.to_be_bytes(),
    ]
}

/// Returns the list of counters with these values.
pub(super) fn counter_list(values: &[[u8; 8]; 3]) -> [Counter<'_>; 3] {
    let [duration, packets, bytes] = values;
    [(DURATION, duration), (PACKET_COUNT, packets), (BYTE_COUNT, bytes)].map(|(number, value)| Counter {
        class: 0x8002,
        number,
        value,
    })
}

/// Splits a lifetime into whole seconds and nanoseconds, as on the wire.
pub(crate) fn duration_to_wire(duration: Duration) -> Result<(u32, u32), EncodeError> {
    let seconds = u32::try_from(duration.as_secs()).map_err(|_| EncodeError::Value { field: "duration" })?;
    Ok((seconds, duration.subsec_nanos()))
}
