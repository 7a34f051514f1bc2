//! Packet-in and packet-out (1.0.0, 5.4.1 and 5.3.6; 1.3.5, 7.4.1 and 7.3.7; 1.5.1, 7.3.6).

use super::action::Actions;
use super::match_::Match;
use super::number::{BufferId, PacketInReason, TableId};
use crate::port_number::PortNo;
use crate::schema::{Port16, Sized, structure};

structure! {
    /// A packet that the switch sends to the controller.
    pub struct PacketIn<'a> in Message {
        buffer_id: BufferId = BufferId::NONE,
        /// Length of the packet in bytes.
        total_len: u16,
        /// The port that received the packet. From 1.2 on, it is in the match instead.
        in_port: PortNo,
        /// The underlying physical port (1.1). From 1.2 on, it is in the match instead.
        in_phy_port: PortNo,
        reason: PacketInReason,
        table_id: TableId,
        cookie: u64,
        /// The pipeline fields of the packet (since 1.2).
        match_fields: Match<'a>,
        /// The packet, possibly truncated.
        data: &'a [u8],
    }
    0 => [buffer_id, total_len, in_port as Port16, reason, 1, data],
    1 => [buffer_id, in_port, in_phy_port, total_len, reason, table_id, data],
    2 => [buffer_id, total_len, reason, table_id, match_fields, 2, data],
    3.. => [buffer_id, total_len, reason, table_id, cookie, match_fields, 2, data],
}

structure! {
    /// A packet that the controller sends to the switch.
    pub struct PacketOut<'a> in Message {
        buffer_id: BufferId = BufferId::NONE,
        /// The port that the switch treats as the receiving port. From 1.5 on, it is in the match instead.
        in_port: PortNo,
        /// The pipeline fields to assume for the packet (1.5).
        match_fields: Match<'a>,
        actions: Actions<'a>,
        /// The packet, unless it is in the switch's buffer.
        data: &'a [u8],
    }
    0 => [buffer_id, in_port as Port16, size, actions as Sized, data],
    1..=4 => [buffer_id, in_port, size, 6, actions as Sized, data],
    5.. => [buffer_id, size, 2, match_fields, actions as Sized, data],
}
