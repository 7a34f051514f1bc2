//! Multipart messages of 1.3 (7.3.5).

use core::time::Duration;

use bytes::{BufMut, BytesMut};

use super::instruction::write_instructions;
use super::match_encode::write_match;
use super::match_fields::Match;
use super::{GROUP_ANY, Instructions};
use crate::any::{self, FlowFlags};
use crate::encode::{EncodeError, patch_length};
use crate::error::{Error, Part};
use crate::field::{be8, be16, be32, be64, bounded, fixed, getters, set8, set16, set32, set64};
use crate::frame::Frame;
use crate::port_number::PortNo;
use crate::version::Version;

/// `ofp_multipart_request` or `ofp_multipart_reply`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multipart<'a> {
    fixed: &'a [u8; 8],
    body: &'a [u8],
}

impl<'a> Multipart<'a> {
    /// Where the body starts in the message.
    pub(crate) const BODY: usize = 16;

    /// Checks the message; not its body.
    ///
    /// # Errors
    ///
    /// It is cut off.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, body) = fixed::<8>(frame.body(), Part::Statistics, 8, "multipart")?;
        Ok(Self { fixed, body })
    }

    getters! {
        /// `ofp_multipart_type`.
        kind = be16 at 0 -> u16;
        /// Flags; bit 0 says that another part follows.
        flags = be16 at 2 -> u16;
    }

    /// What follows the flags and their padding.
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// `ofp_flow_stats_request`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowStatisticsRequest<'a> {
    fixed: &'a [u8; 32],
    match_fields: Match<'a>,
}

impl<'a> FlowStatisticsRequest<'a> {
    /// Checks the body of a flow statistics request; match fields are checked when iterated.
    ///
    /// # Errors
    ///
    /// It is cut off, or the match is longer than it.
    pub fn parse(multipart: &Multipart<'a>) -> Result<Self, Error> {
        let (fixed, rest) =
            fixed::<32>(multipart.body, Part::Statistics, Multipart::BODY, "flow statistics request")?;
        let (match_fields, _) = Match::read(rest, Multipart::BODY + 32)?;
        Ok(Self { fixed, match_fields })
    }

    getters! {
        /// The table, or 0xff.
        table_id = be8 at 0 -> u8;
        /// Only flows with this output; 0xffffffff does not restrict.
        out_port = be32 at 4 -> u32;
        /// Only flows with this group; 0xffffffff does not restrict.
        out_group = be32 at 8 -> u32;
        /// Only flows with this cookie.
        cookie = be64 at 16 -> u64;
        /// The bits of the cookie that count.
        cookie_mask = be64 at 24 -> u64;
    }

    /// The match.
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    pub(crate) fn generalise(&self) -> Result<any::FlowStatisticsRequest, Error> {
        Ok(any::FlowStatisticsRequest {
            table_id: self.table_id(),
            out_port: PortNo(self.out_port()),
            out_group: Some(self.out_group()).filter(|group| *group != GROUP_ANY),
            cookie: self.cookie(),
            cookie_mask: self.cookie_mask(),
            match_fields: self.match_fields.generalise()?,
        })
    }
}

pub(crate) fn write_flow_statistics_request(
    request: &any::FlowStatisticsRequest,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let mut bytes = [0; 32];
    set8::<0, _>(&mut bytes, request.table_id);
    set32::<4, _>(&mut bytes, request.out_port.0);
    set32::<8, _>(&mut bytes, request.out_group.unwrap_or(GROUP_ANY));
    set64::<16, _>(&mut bytes, request.cookie);
    set64::<24, _>(&mut bytes, request.cookie_mask);
    any::write_multipart(Version::V1_3, true, xid, any::Multipart::FLOW, 0, out, |out| {
        out.put_slice(&bytes);
        write_match(&request.match_fields, out)
    })
}

/// `ofp_flow_stats`: one flow of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowEntry<'a> {
    fixed: &'a [u8; 48],
    match_fields: Match<'a>,
    instructions: Instructions<'a>,
}

impl<'a> FlowEntry<'a> {
    /// The length of an entry with an empty match and without instructions, in bytes.
    const LENGTH_MIN: usize = 56;

    /// The first entry of `bytes` and its length.
    pub(crate) fn read(bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error> {
        let (head, _) = fixed::<4>(bytes, Part::Statistics, offset, "flow entry")?;
        let length = usize::from(be16::<0, _>(head));
        let (entry, _) =
            bounded(bytes, length, Self::LENGTH_MIN, Part::Statistics, offset, "flow entry length")?;
        let (fixed, rest) = fixed::<48>(entry, Part::Statistics, offset, "flow entry")?;
        let (match_fields, rest) = Match::read(rest, offset + 48)?;
        let instructions = Instructions::new(rest, offset + length - rest.len());
        Ok((Self { fixed, match_fields, instructions }, length))
    }

    getters! {
        /// Its table.
        table_id = be8 at 2 -> u8;
        /// How long the flow has lived, whole seconds.
        duration_sec = be32 at 4 -> u32;
        /// How long it has lived beyond the seconds, in nanoseconds.
        duration_nsec = be32 at 8 -> u32;
        /// Its priority.
        priority = be16 at 12 -> u16;
        /// Its idle timeout in seconds.
        idle_timeout = be16 at 14 -> u16;
        /// Its hard timeout in seconds.
        hard_timeout = be16 at 16 -> u16;
        /// Its options (`ofp_flow_mod_flags`).
        flags = be16 at 18 -> u16;
        /// The controller's own mark on it.
        cookie = be64 at 24 -> u64;
        /// Packets that it matched.
        packet_count = be64 at 32 -> u64;
        /// Bytes that it matched.
        byte_count = be64 at 40 -> u64;
    }

    /// The match.
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    /// The instructions.
    pub const fn instructions(&self) -> Instructions<'a> {
        self.instructions
    }

    pub(crate) fn generalise(&self) -> Result<any::FlowEntry<'a>, Error> {
        let match_fields = self.match_fields.generalise()?;
        let (actions, goto_table, other_instructions) = self.instructions.generalise()?;
        Ok(any::FlowEntry {
            table_id: self.table_id(),
            duration: Duration::new(u64::from(self.duration_sec()), self.duration_nsec()),
            priority: self.priority(),
            idle_timeout: self.idle_timeout(),
            hard_timeout: self.hard_timeout(),
            flags: FlowFlags(self.flags()),
            cookie: self.cookie(),
            packet_count: self.packet_count(),
            byte_count: self.byte_count(),
            match_fields,
            actions,
            goto_table,
            other_instructions,
        })
    }
}

pub(crate) fn write_flow_entry(entry: &any::FlowEntry<'_>, out: &mut BytesMut) -> Result<(), EncodeError> {
    let start = out.len();
    let (seconds, nanoseconds) = any::duration_to_wire(entry.duration)?;
    let mut bytes = [0; 48];
    set8::<2, _>(&mut bytes, entry.table_id);
    set32::<4, _>(&mut bytes, seconds);
    set32::<8, _>(&mut bytes, nanoseconds);
    set16::<12, _>(&mut bytes, entry.priority);
    set16::<14, _>(&mut bytes, entry.idle_timeout);
    set16::<16, _>(&mut bytes, entry.hard_timeout);
    set16::<18, _>(&mut bytes, entry.flags.0);
    set64::<24, _>(&mut bytes, entry.cookie);
    set64::<32, _>(&mut bytes, entry.packet_count);
    set64::<40, _>(&mut bytes, entry.byte_count);
    out.put_slice(&bytes);
    write_match(&entry.match_fields, out)?;
    write_instructions(&entry.actions, entry.goto_table, entry.other_instructions, out)?;
    patch_length(out, start, start)
}
