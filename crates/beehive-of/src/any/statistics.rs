//! Statistics and multipart messages. Flows and ports are decoded; the bodies of all other kinds are kept as
//! bytes.

use core::time::Duration;

use bytes::{BufMut, BytesMut};

use super::action::Actions;
use super::flow::{Counted, FlowFlags, counter_list, counters_to_wire, duration_to_wire};
use super::instructions;
use super::match_fields::Match;
use super::port::Ports;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::message::{self, GroupId, TableId};
use crate::port_number::PortNo;
use crate::schema::{List, Reader, Sink, Source, Value, Writer};
use crate::version::Version;

/// Asks for the flows that a match covers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowStatisticsRequest {
    /// The table; 0xff selects all tables.
    pub table_id: u8,
    /// Restricts the request to flows that output to this port; [`PortNo::ANY`] means no restriction.
    pub out_port: PortNo,
    /// Restricts the request to flows that use this group; `None` means no restriction. Since 1.1.
    pub out_group: Option<u32>,
    /// Restricts the request to flows whose cookie equals this one in the bits of `cookie_mask`. Since 1.1.
    pub cookie: u64,
    /// The bits of `cookie` to compare; 0 means no restriction. Since 1.1.
    pub cookie_mask: u64,
    /// Restricts the request to flows that this match covers.
    pub match_fields: Match,
}

impl FlowStatisticsRequest {
    /// The request for all flows of all tables.
    pub const ALL: Self = Self {
        table_id: 0xff,
        out_port: PortNo::ANY,
        out_group: None,
        cookie: 0,
        cookie_mask: 0,
        match_fields: Match::ANY,
    };

    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express a field.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        if version == Version::V1_0 {
            let unsupported = |field| Err(EncodeError::unsupported(version, field));
            if self.cookie != 0 || self.cookie_mask != 0 {
                return unsupported("the cookie of a flow statistics request");
            }
            if self.out_port.to_v10().is_none() {
                return unsupported("out_port above 0xff00");
            }
        }

        let request = message::FlowRequest {
            table_id: TableId(self.table_id),
            out_port: self.out_port,
            out_group: self.out_group.map_or(GroupId::ANY, GroupId),
            cookie: self.cookie,
            cookie_mask: self.cookie_mask,
            match_fields: message::Match::Any(&self.match_fields),
        };

        write_multipart(version, true, xid, Multipart::FLOW, 0, out, |out| {
            request.write(&mut Writer::new(version, out))
        })
    }

    pub(super) fn generalize(request: &message::FlowRequest<'_>) -> Result<Self, Error> {
        Ok(Self {
            table_id: request.table_id.0,
            out_port: request.out_port,
            out_group: Some(request.out_group.0).filter(|group| *group != GroupId::ANY.0),
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            match_fields: request.match_fields.generalize()?,
        })
    }
}

/// A flow in a flow statistics reply.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowEntry<'a> {
    /// The flow's table.
    pub table_id: u8,
    /// Time since the flow was installed.
    pub duration: Duration,
    /// The flow's priority.
    pub priority: u16,
    /// The flow's idle timeout in seconds; 0 if it has none.
    pub idle_timeout: u16,
    /// The flow's hard timeout in seconds; 0 if it has none.
    pub hard_timeout: u16,
    /// The flow's options; empty before 1.3, whose messages do not carry them.
    pub flags: FlowFlags,
    /// The cookie that the controller gave the flow.
    pub cookie: u64,
    /// Number of packets that matched the flow.
    pub packet_count: u64,
    /// Number of bytes in those packets.
    pub byte_count: u64,
    /// The packets that the flow matches.
    pub match_fields: Match,
    /// The actions that the flow applies.
    pub actions: Actions<'a>,
    /// The table that processes the packet next, if any. Since 1.1.
    pub goto_table: Option<u8>,
    /// Number of instructions in a decoded message that this structure does not model. Encoding fails unless
    /// it is 0.
    pub other_instructions: u16,
}

/// The flows of a message.
pub type FlowEntries<'a> = List<'a, FlowEntry<'a>>;

impl<'a> Value<'a> for FlowEntry<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let version = reader.version();
        let entry = message::FlowEntry::read(reader)?;
        let mut counted =
            Counted::of(entry.duration_sec, entry.duration_nsec, entry.packet_count, entry.byte_count);
        if version >= Version::V1_5 {
            counted = Counted::from_list(&entry.counters)?;
        }

        let (actions, goto_table, other_instructions) = match version {
            Version::V1_0 => (entry.actions.reinterpret(), None, 0),
            _ => instructions::generalize(entry.instructions)?,
        };

        Ok(Self {
            table_id: entry.table_id.0,
            duration: counted.duration,
            priority: entry.priority,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            flags: FlowFlags(entry.flags.0),
            cookie: entry.cookie,
            packet_count: counted.packet_count,
            byte_count: counted.byte_count,
            match_fields: entry.match_fields.generalize()?,
            actions,
            goto_table,
            other_instructions,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let start = writer.position();
        let version = writer.version();
        if version < Version::V1_3 && self.flags != FlowFlags::NONE {
            return Err(writer.unsupported("the flags of a flow entry"));
        }

        let (seconds, nanoseconds) = duration_to_wire(self.duration)?;
        let values = counters_to_wire(seconds, nanoseconds, self.packet_count, self.byte_count);
        let counters = counter_list(&values);
        let mut entry = message::FlowEntry {
            table_id: TableId(self.table_id),
            priority: self.priority,
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            flags: message::FlowModFlags(self.flags.0),
            cookie: self.cookie,
            match_fields: message::Match::Any(&self.match_fields),
            ..Default::default()
        };

        if version >= Version::V1_5 {
            entry.counters = message::FlowCounters((&counters).into());
        } else {
            (entry.duration_sec, entry.duration_nsec) = (seconds, nanoseconds);
            (entry.packet_count, entry.byte_count) = (self.packet_count, self.byte_count);
        }

        entry.write(writer)?;

        // In every version, an entry starts with its length and ends with its actions or instructions.
        instructions::write(&self.actions, self.goto_table, self.other_instructions, writer)?;
        writer.patch(start, start)
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        sink.text(format_args!("{self:?}"));
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        message::FlowEntry::compose(source, writer)
    }
}

/// One part of the reply to a flow statistics request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowStatistics<'a> {
    /// Whether another part of the reply follows.
    pub more: bool,
    /// The flows in this part.
    pub entries: FlowEntries<'a>,
}

impl FlowStatistics<'_> {
    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express an entry or the message is too long. If it is too long, send
    /// several parts.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        write_reply(version, xid, Multipart::FLOW, self.more, out, |out| {
            self.entries.append(&mut Writer::new(version, out))
        })
    }
}

/// One part of the reply to a port description request. Since 1.3.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PortDescription<'a> {
    /// Whether another part of the reply follows.
    pub more: bool,
    /// The ports in this part.
    pub ports: Ports<'a>,
}

impl PortDescription<'_> {
    /// Appends a request for the port description.
    ///
    /// # Errors
    ///
    /// Fails before 1.3, where the features reply carries the ports.
    pub fn encode_request_into(version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        if version < Version::V1_3 {
            return Err(EncodeError::unsupported(version, "port description request"));
        }
        // In 1.5, the request names one port or all ports.
        let body: &[u8] = if version >= Version::V1_5 { &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0] } else { &[] };
        Multipart { version, kind: Multipart::PORT_DESCRIPTION, flags: 0, body }
            .encode_request_into(version, xid, out)
    }

    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails before 1.3, where the features reply carries the ports, or if the message is too long. If it is
    /// too long, send several parts.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        if version < Version::V1_3 {
            return Err(EncodeError::unsupported(version, "port description"));
        }
        write_reply(version, xid, Multipart::PORT_DESCRIPTION, self.more, out, |out| {
            self.ports.append(&mut Writer::new(version, out))
        })
    }
}

/// A statistics or multipart message of any kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multipart<'a> {
    /// The version of `kind`, `flags` and `body`. The message can be encoded in this version only.
    pub version: Version,
    /// `ofp_stats_types` or `ofp_multipart_type`.
    pub kind: u16,
    /// Flags; bit 0 means that another part follows.
    pub flags: u16,
    /// The body, undecoded.
    pub body: &'a [u8],
}

impl Multipart<'_> {
    /// The kind that describes the switch: manufacturer, hardware, software, serial number. The same in every
    /// version.
    pub const DESCRIPTION: u16 = 0;
    /// The kind that lists flows. The same in every version.
    pub const FLOW: u16 = 1;
    /// The kind that lists ports. Since 1.3.
    pub const PORT_DESCRIPTION: u16 = 13;
    /// The flag that announces another part.
    pub const MORE: u16 = 1;

    /// Appends a request.
    ///
    /// # Errors
    ///
    /// Fails if `version` is not the version of this message, or if the message is too long.
    pub fn encode_request_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.check(version)?;
        write_multipart(version, true, xid, self.kind, self.flags, out, |out| {
            out.put_slice(self.body);
            Ok(())
        })
    }

    /// Appends a reply.
    ///
    /// # Errors
    ///
    /// Fails if `version` is not the version of this message, or if the message is too long.
    pub fn encode_reply_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.check(version)?;
        write_multipart(version, false, xid, self.kind, self.flags, out, |out| {
            out.put_slice(self.body);
            Ok(())
        })
    }

    fn check(&self, version: Version) -> Result<(), EncodeError> {
        match version == self.version {
            true => Ok(()),
            false => Err(EncodeError::unsupported(version, "a message of another version")),
        }
    }
}

fn write_reply(
    version: Version,
    xid: u32,
    kind: u16,
    more: bool,
    out: &mut BytesMut,
    body: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let flags = if more { Multipart::MORE } else { 0 };
    write_multipart(version, false, xid, kind, flags, out, body)
}

/// Appends a statistics or multipart message: kind, flags, padding (from 1.1 on) and body.
pub(super) fn write_multipart(
    version: Version,
    request: bool,
    xid: u32,
    kind: u16,
    flags: u16,
    out: &mut BytesMut,
    body: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let message_type = match (version, request) {
        (Version::V1_0, true) => 16,
        (Version::V1_0, false) => 17,
        (_, true) => 18,
        (_, false) => 19,
    };
    crate::encode::message(out, version.wire(), message_type, xid, |out| {
        out.put_u16(kind);
        out.put_u16(flags);
        if version != Version::V1_0 {
            out.put_u32(0);
        }
        body(out)
    })
}
