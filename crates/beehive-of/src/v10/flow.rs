//! Flow-mod (5.3.3) and flow-removed (5.4.2) of 1.0.

use core::time::Duration;

use bytes::{BufMut, BytesMut};

use super::match_fields::{MATCH_LENGTH, Match, encode_match};
use super::{Actions, WIRE, message_type, port_to_wire, unsupported};
use crate::any::{self, FlowCommand, FlowFlags, FlowRemovedReason};
use crate::encode::{EncodeError, message};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be8, be16, be32, be64, fixed, getters, set8, set16, set32, set64};
use crate::frame::Frame;
use crate::port_number::PortNo;
use crate::version::Version;

/// `ofp_flow_mod`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowMod<'a> {
    match_fields: Match<'a>,
    fixed: &'a [u8; 24],
    actions: &'a [u8],
}

impl<'a> FlowMod<'a> {
    /// Where the actions start in the message.
    const ACTIONS: usize = 72;

    /// Checks the message; its actions are checked when iterated.
    ///
    /// # Errors
    ///
    /// It is cut off.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (match_fields, rest) = fixed::<MATCH_LENGTH>(frame.body(), Part::Match, 8, "flow-mod match")?;
        let (fixed, actions) = fixed::<24>(rest, Part::FlowMod, 48, "flow-mod")?;
        Ok(Self { match_fields: Match::new(match_fields), fixed, actions })
    }

    getters! {
        /// The controller's own mark on the flow.
        cookie = be64 at 0 -> u64;
        /// What to do (`ofp_flow_mod_command`).
        command = be16 at 8 -> u16;
        /// Seconds without a packet after which the flow goes.
        idle_timeout = be16 at 10 -> u16;
        /// Seconds after which the flow goes.
        hard_timeout = be16 at 12 -> u16;
        /// Which flow wins.
        priority = be16 at 14 -> u16;
        /// The buffer identifier, or 0xffffffff.
        buffer_id = be32 at 16 -> u32;
        /// Restricts deletions to flows with this output; 0xffff does not.
        out_port = be16 at 20 -> u16;
        /// Options (`ofp_flow_mod_flags`).
        flags = be16 at 22 -> u16;
    }

    /// The match.
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    /// The actions.
    pub const fn actions(&self) -> Actions<'a> {
        Actions::new(self.actions, Self::ACTIONS)
    }

    pub(crate) fn generalise(&self) -> Result<any::FlowMod<'a>, Error> {
        let command = FlowCommand::from_wire(self.command())
            .ok_or_else(|| Error::new(ErrorKind::Value, Part::FlowMod, 56, "flow-mod command"))?;
        Ok(any::FlowMod {
            command,
            table_id: 0,
            priority: self.priority(),
            idle_timeout: self.idle_timeout(),
            hard_timeout: self.hard_timeout(),
            cookie: self.cookie(),
            cookie_mask: 0,
            buffer_id: any::buffer_from_wire(self.buffer_id()),
            out_port: PortNo::from_v10(self.out_port()),
            out_group: None,
            flags: FlowFlags(self.flags()),
            match_fields: self.match_fields.generalise(),
            actions: any::Actions::wire(Version::V1_0, self.actions, Self::ACTIONS),
            goto_table: None,
            other_instructions: 0,
        })
    }
}

#[inline]
pub(crate) fn write_flow_mod(
    flow: &any::FlowMod<'_>,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    // All tables of a switch that tells of none are the one.
    let deletes = matches!(flow.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
    if flow.table_id != 0 && !(deletes && flow.table_id == 0xff) {
        return Err(unsupported("a flow table other than 0"));
    }
    if flow.cookie_mask != 0 {
        return Err(unsupported("cookie_mask"));
    }
    if flow.out_group.is_some() {
        return Err(unsupported("out_group"));
    }
    if flow.goto_table.is_some() || flow.other_instructions != 0 {
        return Err(unsupported("instructions"));
    }
    const FLAGS: FlowFlags = FlowFlags::SEND_FLOW_REMOVED.with(FlowFlags::CHECK_OVERLAP);
    if !FLAGS.contains(flow.flags) {
        return Err(unsupported("these flow-mod flags"));
    }
    let match_fields = encode_match(&flow.match_fields)?;
    let mut bytes = [0; 24];
    set64::<0, _>(&mut bytes, flow.cookie);
    set16::<8, _>(&mut bytes, flow.command as u16);
    set16::<10, _>(&mut bytes, flow.idle_timeout);
    set16::<12, _>(&mut bytes, flow.hard_timeout);
    set16::<14, _>(&mut bytes, flow.priority);
    set32::<16, _>(&mut bytes, any::buffer_to_wire(flow.buffer_id));
    set16::<20, _>(&mut bytes, port_to_wire(flow.out_port, "out_port above 0xff00")?);
    set16::<22, _>(&mut bytes, flow.flags.0);
    message(out, WIRE, message_type::FLOW_MOD, xid, |out| {
        out.put_slice(&match_fields);
        out.put_slice(&bytes);
        flow.actions.write(Version::V1_0, out)
    })
}

/// `ofp_flow_removed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRemoved<'a> {
    match_fields: Match<'a>,
    fixed: &'a [u8; 40],
}

impl<'a> FlowRemoved<'a> {
    /// Checks the message.
    ///
    /// # Errors
    ///
    /// It is cut off.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (match_fields, rest) = fixed::<MATCH_LENGTH>(frame.body(), Part::Match, 8, "flow-removed match")?;
        let (fixed, _) = fixed::<40>(rest, Part::Message, 48, "flow-removed")?;
        Ok(Self { match_fields: Match::new(match_fields), fixed })
    }

    getters! {
        /// The controller's own mark on the flow.
        cookie = be64 at 0 -> u64;
        /// The flow's priority.
        priority = be16 at 8 -> u16;
        /// Why it went (`ofp_flow_removed_reason`).
        reason = be8 at 10 -> u8;
        /// How long it lived, whole seconds.
        duration_sec = be32 at 12 -> u32;
        /// How long it lived beyond the seconds, in nanoseconds.
        duration_nsec = be32 at 16 -> u32;
        /// Its idle timeout in seconds.
        idle_timeout = be16 at 20 -> u16;
        /// Packets that it matched.
        packet_count = be64 at 24 -> u64;
        /// Bytes that it matched.
        byte_count = be64 at 32 -> u64;
    }

    /// The match.
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    pub(crate) fn generalise(&self) -> any::FlowRemoved {
        any::FlowRemoved {
            match_fields: self.match_fields.generalise(),
            cookie: self.cookie(),
            priority: self.priority(),
            reason: FlowRemovedReason::from_wire(self.reason()),
            table_id: 0,
            duration: Duration::new(u64::from(self.duration_sec()), self.duration_nsec()),
            idle_timeout: self.idle_timeout(),
            hard_timeout: 0,
            packet_count: self.packet_count(),
            byte_count: self.byte_count(),
        }
    }
}

pub(crate) fn write_flow_removed(
    flow: &any::FlowRemoved,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    if flow.table_id != 0 {
        return Err(unsupported("the table of a flow-removed"));
    }
    if flow.hard_timeout != 0 {
        return Err(unsupported("the hard timeout of a flow-removed"));
    }
    if flow.reason == FlowRemovedReason::GroupDelete {
        return Err(unsupported("the group-delete reason of a flow-removed"));
    }
    let match_fields = encode_match(&flow.match_fields)?;
    let (seconds, nanoseconds) = any::duration_to_wire(flow.duration)?;
    let mut bytes = [0; 40];
    set64::<0, _>(&mut bytes, flow.cookie);
    set16::<8, _>(&mut bytes, flow.priority);
    set8::<10, _>(&mut bytes, flow.reason.wire());
    set32::<12, _>(&mut bytes, seconds);
    set32::<16, _>(&mut bytes, nanoseconds);
    set16::<20, _>(&mut bytes, flow.idle_timeout);
    set64::<24, _>(&mut bytes, flow.packet_count);
    set64::<32, _>(&mut bytes, flow.byte_count);
    message(out, WIRE, message_type::FLOW_REMOVED, xid, |out| {
        out.put_slice(&match_fields);
        out.put_slice(&bytes);
        Ok(())
    })
}
