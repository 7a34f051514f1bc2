//! Flow-mod (7.3.4.1) and flow-removed (7.4.2) of 1.3.

use core::time::Duration;

use bytes::{BufMut, BytesMut};

use super::instruction::write_instructions;
use super::match_encode::write_match;
use super::match_fields::Match;
use super::{GROUP_ANY, Instructions, WIRE, message_type};
use crate::any::{self, FlowCommand, FlowFlags, FlowRemovedReason};
use crate::encode::{EncodeError, message};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be8, be16, be32, be64, fixed, getters, set8, set16, set32, set64};
use crate::frame::Frame;
use crate::port_number::PortNo;

/// `ofp_flow_mod`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowMod<'a> {
    fixed: &'a [u8; 40],
    match_fields: Match<'a>,
    instructions: Instructions<'a>,
}

impl<'a> FlowMod<'a> {
    /// Checks the message; match fields, instructions and actions are checked when iterated.
    ///
    /// # Errors
    ///
    /// It is cut off, or the match is longer than it.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, rest) = fixed::<40>(frame.body(), Part::FlowMod, 8, "flow-mod")?;
        let (match_fields, rest) = Match::read(rest, 48)?;
        let instructions = Instructions::new(rest, frame.bytes().len() - rest.len());
        Ok(Self { fixed, match_fields, instructions })
    }

    getters! {
        /// The controller's own mark on the flow.
        cookie = be64 at 0 -> u64;
        /// Which bits of the cookie restrict a modification or deletion.
        cookie_mask = be64 at 8 -> u64;
        /// The table.
        table_id = be8 at 16 -> u8;
        /// What to do (`ofp_flow_mod_command`).
        command = be8 at 17 -> u8;
        /// Seconds without a packet after which the flow goes.
        idle_timeout = be16 at 18 -> u16;
        /// Seconds after which the flow goes.
        hard_timeout = be16 at 20 -> u16;
        /// Which flow wins.
        priority = be16 at 22 -> u16;
        /// The buffer identifier, or 0xffffffff.
        buffer_id = be32 at 24 -> u32;
        /// Restricts deletions to flows with this output; 0xffffffff does not.
        out_port = be32 at 28 -> u32;
        /// Restricts deletions to flows with this group; 0xffffffff does not.
        out_group = be32 at 32 -> u32;
        /// Options (`ofp_flow_mod_flags`).
        flags = be16 at 36 -> u16;
    }

    /// The match.
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    /// The instructions.
    pub const fn instructions(&self) -> Instructions<'a> {
        self.instructions
    }

    pub(crate) fn generalise(&self) -> Result<any::FlowMod<'a>, Error> {
        let command = FlowCommand::from_wire(u16::from(self.command()))
            .ok_or_else(|| Error::new(ErrorKind::Value, Part::FlowMod, 25, "flow-mod command"))?;
        let match_fields = self.match_fields.generalise()?;
        let (actions, goto_table, other_instructions) = self.instructions.generalise()?;
        Ok(any::FlowMod {
            command,
            table_id: self.table_id(),
            priority: self.priority(),
            idle_timeout: self.idle_timeout(),
            hard_timeout: self.hard_timeout(),
            cookie: self.cookie(),
            cookie_mask: self.cookie_mask(),
            buffer_id: any::buffer_from_wire(self.buffer_id()),
            out_port: PortNo(self.out_port()),
            out_group: Some(self.out_group()).filter(|group| *group != GROUP_ANY),
            flags: FlowFlags(self.flags()),
            match_fields,
            actions,
            goto_table,
            other_instructions,
        })
    }
}

#[inline]
pub(crate) fn write_flow_mod(
    flow: &any::FlowMod<'_>,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let mut bytes = [0; 40];
    set64::<0, _>(&mut bytes, flow.cookie);
    set64::<8, _>(&mut bytes, flow.cookie_mask);
    set8::<16, _>(&mut bytes, flow.table_id);
    set8::<17, _>(&mut bytes, flow.command as u8);
    set16::<18, _>(&mut bytes, flow.idle_timeout);
    set16::<20, _>(&mut bytes, flow.hard_timeout);
    set16::<22, _>(&mut bytes, flow.priority);
    set32::<24, _>(&mut bytes, any::buffer_to_wire(flow.buffer_id));
    set32::<28, _>(&mut bytes, flow.out_port.0);
    set32::<32, _>(&mut bytes, flow.out_group.unwrap_or(GROUP_ANY));
    set16::<36, _>(&mut bytes, flow.flags.0);
    message(out, WIRE, message_type::FLOW_MOD, xid, |out| {
        out.put_slice(&bytes);
        write_match(&flow.match_fields, out)?;
        write_instructions(&flow.actions, flow.goto_table, flow.other_instructions, out)
    })
}

/// `ofp_flow_removed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRemoved<'a> {
    fixed: &'a [u8; 40],
    match_fields: Match<'a>,
}

impl<'a> FlowRemoved<'a> {
    /// Checks the message; match fields are checked when iterated.
    ///
    /// # Errors
    ///
    /// It is cut off, or the match is longer than it.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, rest) = fixed::<40>(frame.body(), Part::Message, 8, "flow-removed")?;
        let (match_fields, _) = Match::read(rest, 48)?;
        Ok(Self { fixed, match_fields })
    }

    getters! {
        /// The controller's own mark on the flow.
        cookie = be64 at 0 -> u64;
        /// The flow's priority.
        priority = be16 at 8 -> u16;
        /// Why it went (`ofp_flow_removed_reason`).
        reason = be8 at 10 -> u8;
        /// Its table.
        table_id = be8 at 11 -> u8;
        /// How long it lived, whole seconds.
        duration_sec = be32 at 12 -> u32;
        /// How long it lived beyond the seconds, in nanoseconds.
        duration_nsec = be32 at 16 -> u32;
        /// Its idle timeout in seconds.
        idle_timeout = be16 at 20 -> u16;
        /// Its hard timeout in seconds.
        hard_timeout = be16 at 22 -> u16;
        /// Packets that it matched.
        packet_count = be64 at 24 -> u64;
        /// Bytes that it matched.
        byte_count = be64 at 32 -> u64;
    }

    /// The match.
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    pub(crate) fn generalise(&self) -> Result<any::FlowRemoved, Error> {
        Ok(any::FlowRemoved {
            match_fields: self.match_fields.generalise()?,
            cookie: self.cookie(),
            priority: self.priority(),
            reason: FlowRemovedReason::from_wire(self.reason()),
            table_id: self.table_id(),
            duration: Duration::new(u64::from(self.duration_sec()), self.duration_nsec()),
            idle_timeout: self.idle_timeout(),
            hard_timeout: self.hard_timeout(),
            packet_count: self.packet_count(),
            byte_count: self.byte_count(),
        })
    }
}

pub(crate) fn write_flow_removed(
    flow: &any::FlowRemoved,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let (seconds, nanoseconds) = any::duration_to_wire(flow.duration)?;
    let mut bytes = [0; 40];
    set64::<0, _>(&mut bytes, flow.cookie);
    set16::<8, _>(&mut bytes, flow.priority);
    set8::<10, _>(&mut bytes, flow.reason.wire());
    set8::<11, _>(&mut bytes, flow.table_id);
    set32::<12, _>(&mut bytes, seconds);
    set32::<16, _>(&mut bytes, nanoseconds);
    set16::<20, _>(&mut bytes, flow.idle_timeout);
    set16::<22, _>(&mut bytes, flow.hard_timeout);
    set64::<24, _>(&mut bytes, flow.packet_count);
    set64::<32, _>(&mut bytes, flow.byte_count);
    message(out, WIRE, message_type::FLOW_REMOVED, xid, |out| {
        out.put_slice(&bytes);
        write_match(&flow.match_fields, out)
    })
}
