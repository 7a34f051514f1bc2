//! Statistics of 1.0 (5.3.5).

use core::time::Duration;

use bytes::{BufMut, BytesMut};

use super::match_fields::{MATCH_LENGTH, Match, encode_match};
use super::{Actions, port_to_wire, unsupported};
use crate::any::{self, FlowFlags};
use crate::encode::{EncodeError, patch_length};
use crate::error::{Error, Part};
use crate::field::{be8, be16, be32, be64, bounded, fixed, getters, set8, set16, set32, set64};
use crate::frame::Frame;
use crate::port_number::PortNo;
use crate::version::Version;

/// `ofp_stats_request` or `ofp_stats_reply`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statistics<'a> {
    fixed: &'a [u8; 4],
    body: &'a [u8],
}

impl<'a> Statistics<'a> {
    /// Where the body starts in the message.
    pub(crate) const BODY: usize = 12;

    /// Checks the message; not its body.
    ///
    /// # Errors
    ///
    /// It is cut off.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, body) = fixed::<4>(frame.body(), Part::Statistics, 8, "statistics")?;
        Ok(Self { fixed, body })
    }

    getters! {
        /// `ofp_stats_types`.
        kind = be16 at 0 -> u16;
        /// Flags; bit 0 of a reply says that another part follows.
        flags = be16 at 2 -> u16;
    }

    /// What follows the flags.
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// `ofp_flow_stats_request`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowStatisticsRequest<'a> {
    match_fields: Match<'a>,
    fixed: &'a [u8; 4],
}

impl<'a> FlowStatisticsRequest<'a> {
    /// Checks the body of a flow statistics request.
    ///
    /// # Errors
    ///
    /// It is cut off.
    pub fn parse(statistics: &Statistics<'a>) -> Result<Self, Error> {
        let (match_fields, rest) = fixed::<MATCH_LENGTH>(
            statistics.body,
            Part::Match,
            Statistics::BODY,
            "flow statistics request match",
        )?;
        let offset = Statistics::BODY + MATCH_LENGTH;
        let (fixed, _) = fixed::<4>(rest, Part::Statistics, offset, "flow statistics request")?;
        Ok(Self { match_fields: Match::new(match_fields), fixed })
    }

    getters! {
        /// The table, or 0xff.
        table_id = be8 at 0 -> u8;
        /// Only flows with this output; 0xffff does not restrict.
        out_port = be16 at 2 -> u16;
    }

    /// The match.
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    pub(crate) fn generalise(&self) -> any::FlowStatisticsRequest {
        any::FlowStatisticsRequest {
            table_id: self.table_id(),
            out_port: PortNo::from_v10(self.out_port()),
            out_group: None,
            cookie: 0,
            cookie_mask: 0,
            match_fields: self.match_fields.generalise(),
        }
    }
}

pub(crate) fn write_flow_statistics_request(
    request: &any::FlowStatisticsRequest,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    if request.out_group.is_some() {
        return Err(unsupported("out_group"));
    }
    if request.cookie != 0 || request.cookie_mask != 0 {
        return Err(unsupported("the cookie of a flow statistics request"));
    }
    let match_fields = encode_match(&request.match_fields)?;
    let mut bytes = [0; 4];
    set8::<0, _>(&mut bytes, request.table_id);
    set16::<2, _>(&mut bytes, port_to_wire(request.out_port, "out_port above 0xff00")?);
    any::write_multipart(Version::V1_0, true, xid, any::Multipart::FLOW, 0, out, |out| {
        out.put_slice(&match_fields);
        out.put_slice(&bytes);
        Ok(())
    })
}

/// `ofp_flow_stats`: one flow of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowEntry<'a> {
    table_id: u8,
    match_fields: Match<'a>,
    fixed: &'a [u8; 44],
    actions: &'a [u8],
    actions_offset: usize,
}

impl<'a> FlowEntry<'a> {
    /// The length of an entry without actions, in bytes.
    const LENGTH_MIN: usize = 88;

    /// The first entry of `bytes` and its length.
    pub(crate) fn read(bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error> {
        let (head, _) = fixed::<4>(bytes, Part::Statistics, offset, "flow entry")?;
        let length = usize::from(be16::<0, _>(head));
        let (entry, _) =
            bounded(bytes, length, Self::LENGTH_MIN, Part::Statistics, offset, "flow entry length")?;
        let (_, rest) = fixed::<4>(entry, Part::Statistics, offset, "flow entry")?;
        let (match_fields, rest) = fixed::<MATCH_LENGTH>(rest, Part::Match, offset + 4, "flow entry match")?;
        let (fixed, actions) = fixed::<44>(rest, Part::Statistics, offset + 44, "flow entry")?;
        let entry = Self {
            table_id: be8::<2, _>(head),
            match_fields: Match::new(match_fields),
            fixed,
            actions,
            actions_offset: offset + Self::LENGTH_MIN,
        };
        Ok((entry, length))
    }

    getters! {
        /// How long the flow has lived, whole seconds.
        duration_sec = be32 at 0 -> u32;
        /// How long it has lived beyond the seconds, in nanoseconds.
        duration_nsec = be32 at 4 -> u32;
        /// Its priority.
        priority = be16 at 8 -> u16;
        /// Its idle timeout in seconds.
        idle_timeout = be16 at 10 -> u16;
        /// Its hard timeout in seconds.
        hard_timeout = be16 at 12 -> u16;
        /// The controller's own mark on it.
        cookie = be64 at 20 -> u64;
        /// Packets that it matched.
        packet_count = be64 at 28 -> u64;
        /// Bytes that it matched.
        byte_count = be64 at 36 -> u64;
    }

    /// Its table.
    pub const fn table_id(&self) -> u8 {
        self.table_id
    }

    /// The match.
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    /// The actions.
    pub const fn actions(&self) -> Actions<'a> {
        Actions::new(self.actions, self.actions_offset)
    }

    pub(crate) fn generalise(&self) -> any::FlowEntry<'a> {
        any::FlowEntry {
            table_id: self.table_id,
            duration: Duration::new(u64::from(self.duration_sec()), self.duration_nsec()),
            priority: self.priority(),
            idle_timeout: self.idle_timeout(),
            hard_timeout: self.hard_timeout(),
            flags: FlowFlags::NONE,
            cookie: self.cookie(),
            packet_count: self.packet_count(),
            byte_count: self.byte_count(),
            match_fields: self.match_fields.generalise(),
            actions: any::Actions::wire(Version::V1_0, self.actions, self.actions_offset),
            goto_table: None,
            other_instructions: 0,
        }
    }
}

pub(crate) fn write_flow_entry(entry: &any::FlowEntry<'_>, out: &mut BytesMut) -> Result<(), EncodeError> {
    if entry.flags != FlowFlags::NONE {
        return Err(unsupported("the flags of a flow entry"));
    }
    if entry.goto_table.is_some() || entry.other_instructions != 0 {
        return Err(unsupported("instructions"));
    }
    let start = out.len();
    let (seconds, nanoseconds) = any::duration_to_wire(entry.duration)?;
    let mut bytes = [0; 44];
    set32::<0, _>(&mut bytes, seconds);
    set32::<4, _>(&mut bytes, nanoseconds);
    set16::<8, _>(&mut bytes, entry.priority);
    set16::<10, _>(&mut bytes, entry.idle_timeout);
    set16::<12, _>(&mut bytes, entry.hard_timeout);
    set64::<20, _>(&mut bytes, entry.cookie);
    set64::<28, _>(&mut bytes, entry.packet_count);
    set64::<36, _>(&mut bytes, entry.byte_count);
    out.put_slice(&[0, 0, entry.table_id, 0]);
    out.put_slice(&encode_match(&entry.match_fields)?);
    out.put_slice(&bytes);
    entry.actions.write(Version::V1_0, out)?;
    patch_length(out, start, start)
}
