//! Statistics and multipart messages: flows, ports, and all else as bytes.

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
    /// The table; 0xff is all of them.
    pub table_id: u8,
    /// Only flows with this output; [`PortNo::ANY`] does not restrict.
    pub out_port: PortNo,
    /// Only flows with this group; `None` does not restrict. 1.1 on.
    pub out_group: Option<u32>,
    /// With `cookie_mask`: only flows with this cookie. 1.1 on.
    pub cookie: u64,
    /// The bits of `cookie` that count; 0 does not restrict. 1.1 on.
    pub cookie_mask: u64,
    /// Which flows.
    pub match_fields: Match,
}

impl FlowStatisticsRequest {
    /// All flows of all tables.
    pub const ALL: Self = Self {
        table_id: 0xff,
        out_port: PortNo::ANY,
        out_group: None,
        cookie: 0,
        cookie_mask: 0,
        match_fields: Match::ANY,
    };

    /// Appends the message.
    ///
    /// # Errors
    ///
    /// The version cannot express a field.
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

    pub(super) fn generalise(request: &message::FlowRequest<'_>) -> Result<Self, Error> {
        Ok(Self {
            table_id: request.table_id.0,
            out_port: request.out_port,
            out_group: Some(request.out_group.0).filter(|group| *group != GroupId::ANY.0),
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            match_fields: request.match_fields.generalise()?,
        })
    }
}

/// One flow of a flow statistics reply.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowEntry<'a> {
    /// Its table.
    pub table_id: u8,
    /// How long it has lived, to the nanosecond.
    pub duration: Duration,
    /// Its priority.
    pub priority: u16,
    /// Its idle timeout in seconds; 0 is none.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds; 0 is none.
    pub hard_timeout: u16,
    /// Its options; none before 1.3, which do not tell.
    pub flags: FlowFlags,
    /// The controller's own mark on it.
    pub cookie: u64,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
    /// Which packets it is for.
    pub match_fields: Match,
    /// What it does with them at once.
    pub actions: Actions<'a>,
    /// The table that it goes on in. 1.1 on.
    pub goto_table: Option<u8>,
    /// Instructions of a decoded message that have no name here; not encoded.
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
            _ => instructions::generalise(entry.instructions)?,
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
            match_fields: entry.match_fields.generalise()?,
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
        // What the flow does is the last of it in every version; the length is the first.
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

/// One part of the answer to a flow statistics request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowStatistics<'a> {
    /// Whether another part follows.
    pub more: bool,
    /// Flows.
    pub entries: FlowEntries<'a>,
}

impl FlowStatistics<'_> {
    /// Appends the message.
    ///
    /// # Errors
    ///
    /// The version cannot express an entry, or the message is too long: send several parts.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        write_reply(version, xid, Multipart::FLOW, self.more, out, |out| {
            self.entries.append(&mut Writer::new(version, out))
        })
    }
}

/// One part of the answer to a port description request. 1.3 on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PortDescription<'a> {
    /// Whether another part follows.
    pub more: bool,
    /// Ports.
    pub ports: Ports<'a>,
}

impl PortDescription<'_> {
    /// Appends the request for it.
    ///
    /// # Errors
    ///
    /// versions before 1.3 tell their ports in the features reply.
    pub fn encode_request_into(version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        if version < Version::V1_3 {
            return Err(EncodeError::unsupported(version, "port description request"));
        }
        // 1.5 asks for a port, or for all of them.
        let body: &[u8] = if version >= Version::V1_5 { &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0] } else { &[] };
        Multipart { version, kind: Multipart::PORT_DESCRIPTION, flags: 0, body }
            .encode_request_into(version, xid, out)
    }

    /// Appends the message.
    ///
    /// # Errors
    ///
    /// versions before 1.3 tell their ports in the features reply; or the message is too long: send several parts.
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
    /// The version whose kind, flags and body these are; in another one they would be another message.
    pub version: Version,
    /// `ofp_stats_types` or `ofp_multipart_type`.
    pub kind: u16,
    /// Flags; bit 0 says that another part follows.
    pub flags: u16,
    /// What follows the flags, undecoded.
    pub body: &'a [u8],
}

impl Multipart<'_> {
    /// The kind that describes the switch: maker, hardware, software, serial number. Same in every version.
    pub const DESCRIPTION: u16 = 0;
    /// The kind that tells flows. Same in every version.
    pub const FLOW: u16 = 1;
    /// The kind that tells ports. 1.3 on.
    pub const PORT_DESCRIPTION: u16 = 13;
    /// The flag that says that another part follows.
    pub const MORE: u16 = 1;

    /// Appends a request.
    ///
    /// # Errors
    ///
    /// It is of another version, or too long.
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
    /// It is of another version, or too long.
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

/// Appends a statistics or multipart message: kind, flags, padding from 1.1 on, body.
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
