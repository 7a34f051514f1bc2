//! The messages that both benchmarks measure.

use beehive_of::any::{Action, FlowMod, Match, PacketIn, PacketInReason};
use beehive_of::{MacAddress, PortNo, Version};
use bytes::BytesMut;

/// Returns a packet-in of a minimal Ethernet frame, as Open vSwitch sends it.
pub(crate) fn packet_in(version: Version) -> BytesMut {
    let mut out = BytesMut::new();
    let packet = PacketIn {
        buffer_id: None,
        total_len: 64,
        in_port: PortNo(3),
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: None,
        data: &[0xab; 64],
    };
    packet.encode_into(version, 7, &mut out).expect("every version can express the message");
    out
}

/// Reads the fields of a packet-in that a controller uses. If the benchmark received the whole structure, it
/// would measure copies that callers do not make.
pub(crate) fn used(packet: &PacketIn<'_>) -> u32 {
    packet.in_port.0 ^ packet.buffer_id.unwrap_or(0) ^ packet.data.len() as u32 ^ u32::from(packet.total_len)
}

/// Encodes the flow that a learning switch installs.
pub(crate) fn learning_flow(actions: &[Action], version: Version, out: &mut BytesMut) {
    let match_fields = Match {
        in_port: Some(PortNo(3)),
        eth_src: Some(MacAddress([2, 0, 0, 0, 0, 1]).into()),
        eth_dst: Some(MacAddress([2, 0, 0, 0, 0, 2]).into()),
        ..Match::ANY
    };
    let flow = FlowMod { idle_timeout: 60, ..FlowMod::add(100, match_fields, actions.into()) };
    flow.encode_into(version, 7, out).expect("every version can express the message");
}
