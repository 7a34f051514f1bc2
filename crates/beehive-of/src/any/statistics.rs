//! Statistics (1.0) and multipart (1.3) messages: flows, ports, and all else as bytes.

use core::time::Duration;

use bytes::{BufMut, BytesMut};

use super::action::Actions;
use super::flow::FlowFlags;
use super::list::{Element, List};
use super::match_fields::Match;
use super::port::Ports;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::port_number::PortNo;
use crate::version::Version;
use crate::{v10, v13};

/// Asks for the flows that a match covers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowStatisticsRequest {
    /// The table; 0xff is all of them.
    pub table_id: u8,
    /// Only flows with this output; [`PortNo::ANY`] does not restrict.
    pub out_port: PortNo,
    /// Only flows with this group; `None` does not restrict. 1.3 only.
    pub out_group: Option<u32>,
    /// With `cookie_mask`: only flows with this cookie. 1.3 only.
    pub cookie: u64,
    /// The bits of `cookie` that count; 0 does not restrict. 1.3 only.
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
        match version {
            Version::V1_0 => v10::write_flow_statistics_request(self, xid, out),
            Version::V1_3 => v13::write_flow_statistics_request(self, xid, out),
        }
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
    /// Its options; none in 1.0, which does not tell.
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
    /// The table that it goes on in. 1.3 only.
    pub goto_table: Option<u8>,
    /// Instructions of a decoded message that have no name here; not encoded.
    pub other_instructions: u16,
}

/// The flows of a message.
pub type FlowEntries<'a> = List<'a, FlowEntry<'a>>;

impl<'a> Element<'a> for FlowEntry<'a> {
    fn read(version: Version, bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error> {
        match version {
            Version::V1_0 => {
                let (entry, length) = v10::FlowEntry::read(bytes, offset)?;
                Ok((entry.generalise(), length))
            }
            Version::V1_3 => {
                let (entry, length) = v13::FlowEntry::read(bytes, offset)?;
                Ok((entry.generalise()?, length))
            }
        }
    }

    fn write(&self, version: Version, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_flow_entry(self, out),
            Version::V1_3 => v13::write_flow_entry(self, out),
        }
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
        write_reply(version, xid, Multipart::FLOW, self.more, out, |out| self.entries.write(version, out))
    }
}

/// One part of the answer to a port description request. 1.3 only.
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
    /// 1.0 tells its ports in the features reply.
    pub fn encode_request_into(version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        if version == Version::V1_0 {
            return Err(EncodeError::unsupported(version, "port description request"));
        }
        Multipart { kind: Multipart::PORT_DESCRIPTION, flags: 0, body: &[] }
            .encode_request_into(version, xid, out)
    }

    /// Appends the message.
    ///
    /// # Errors
    ///
    /// 1.0 tells its ports in the features reply; or the message is too long: send several parts.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        if version == Version::V1_0 {
            return Err(EncodeError::unsupported(version, "port description"));
        }
        write_reply(version, xid, Multipart::PORT_DESCRIPTION, self.more, out, |out| {
            self.ports.write(version, out)
        })
    }
}

/// A statistics or multipart message of any kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multipart<'a> {
    /// `ofp_stats_types` or `ofp_multipart_type`.
    pub kind: u16,
    /// Flags; bit 0 says that another part follows.
    pub flags: u16,
    /// What follows the flags, undecoded.
    pub body: &'a [u8],
}

impl Multipart<'_> {
    /// The kind that describes the switch: maker, hardware, software, serial number. Same in both versions.
    pub const DESCRIPTION: u16 = 0;
    /// The kind that tells flows. Same in both versions.
    pub const FLOW: u16 = 1;
    /// The kind that tells ports. 1.3 only.
    pub const PORT_DESCRIPTION: u16 = 13;
    /// The flag that says that another part follows.
    pub const MORE: u16 = 1;

    /// Appends a request.
    ///
    /// # Errors
    ///
    /// The message is too long.
    pub fn encode_request_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        write_multipart(version, true, xid, self.kind, self.flags, out, |out| {
            out.put_slice(self.body);
            Ok(())
        })
    }

    /// Appends a reply.
    ///
    /// # Errors
    ///
    /// The message is too long.
    pub fn encode_reply_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        write_multipart(version, false, xid, self.kind, self.flags, out, |out| {
            out.put_slice(self.body);
            Ok(())
        })
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

/// Appends a statistics or multipart message: kind, flags, 1.3's padding, body.
pub(crate) fn write_multipart(
    version: Version,
    request: bool,
    xid: u32,
    kind: u16,
    flags: u16,
    out: &mut BytesMut,
    body: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let message_type = match (version, request) {
        (Version::V1_0, true) => v10::message_type::STATISTICS_REQUEST,
        (Version::V1_0, false) => v10::message_type::STATISTICS_REPLY,
        (Version::V1_3, true) => v13::message_type::MULTIPART_REQUEST,
        (Version::V1_3, false) => v13::message_type::MULTIPART_REPLY,
    };
    crate::encode::message(out, version.wire(), message_type, xid, |out| {
        out.put_u16(kind);
        out.put_u16(flags);
        if version == Version::V1_3 {
            out.put_u32(0);
        }
        body(out)
    })
}
