//! Generates the attacks of hosts behind one port: for each row of the table of threats (S9 to S17), an
//! endless sequence of messages.

use crate::timed_connection::{datagram, packet_in};
use beehive_nom::apps::discovery::{Probe, ProbeKey};
use beehive_nom::object::{LLDP, NodeId, PortId};
use beehive_of::any::{Message, Port, PortName, PortReason, PortState, PortStatus};
use beehive_of::{MacAddress, PortNo, Version};
use bytes::BytesMut;

/// The port of the attackers.
const PORT: u32 = 1;
/// The host at port 4 whose address is spoofed.
pub(crate) const VICTIM: u8 = 7;

/// An attack, and the generator of its messages, which returns the `n`-th message.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) message: fn(u64) -> BytesMut,
}

pub(crate) fn all() -> [Attack; 10] {
    let attack = |name, message| Attack { name, message };
    [
        attack("S9, an Ethernet type that nobody knows", strange_type),
        attack("S10, broken probes", broken_probe),
        attack("S11, malformed packets", malformed),
        attack("S12, forged probes", forged_probe),
        attack("S13, a host that says to be another one", spoofed),
        attack("S13, a storm of ARP", storm),
        attack("S14, forged addresses", forged_address),
        attack("S15, a flood of one packet", flood),
        attack("S16, a flood of flows", flow),
        attack("S17, hosts that join and leave", join_and_leave),
    ]
}

fn ethernet(destination: [u8; 6], source: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&destination[..], &source, &ethertype.to_be_bytes(), payload].concat()
}

const EVIL: [u8; 6] = [2, 0, 0, 0, 0, 66];
const BRIDGES: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];

fn strange_type(_: u64) -> BytesMut {
    packet_in(PORT, &ethernet([0xff; 6], EVIL, 0x8870, &[0; 46]))
}

fn broken_probe(n: u64) -> BytesMut {
    let chassis = [2, 7, 4, 2, 0, 0, 0, 0, 66];
    let payload = match n % 4 {
        0 => vec![0x03, 0xff, 4],
        1 => chassis.to_vec(),
        2 => [&[2u8, 0][..], &chassis].concat(),
        _ => [0xfe, 3, 0, 0x26, 0xe1].repeat(100),
    };
    packet_in(PORT, &ethernet(BRIDGES, EVIL, LLDP, &payload))
}

fn malformed(n: u64) -> BytesMut {
    let mut packet = datagram(66, 2, &[0; 18]);
    match n % 5 {
        0 => packet[14] = 0x40 | (n % 5) as u8,
        1 => packet[16..18].copy_from_slice(&0xffff_u16.to_be_bytes()),
        2 => packet = ethernet([2, 0, 0, 0, 0, 2], EVIL, 0x8100, &[0, 5, 0x81, 0].repeat(30)),
        3 => packet = ethernet([2, 0, 0, 0, 0, 2], EVIL, 0x8847, &[0; 1200]),
        _ => packet.truncate(14 + (n % 28) as usize),
    }

    packet_in(PORT, &packet)
}

fn forged_probe(n: u64) -> BytesMut {
    let from = PortId { node: NodeId(2), port: beehive_nom::object::PortNo(1) };
    let probe = Probe { from, at: beehive_core::Time::ZERO, nonce: n };
    packet_in(PORT, &probe.frame(&ProbeKey::of("a guess"), 3))
}

fn spoofed(n: u64) -> BytesMut {
    packet_in(PORT, &datagram(VICTIM, 2, &n.to_be_bytes()))
}

fn storm(n: u64) -> BytesMut {
    let [.., high, low] = n.to_be_bytes();
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
    arp.extend(EVIL);
    arp.extend([10, 0, 0, 66, 0, 0, 0, 0, 0, 0, 10, 0, high, low]);
    packet_in(PORT, &ethernet([0xff; 6], EVIL, 0x806, &arp))
}

fn forged_address(n: u64) -> BytesMut {
    let [.., a, b, c] = n.to_be_bytes();
    let mut packet = datagram(66, 9, &[0; 18]);
    packet[6..12].copy_from_slice(&[2, 6, 6, a, b, c]);
    packet_in(PORT, &packet)
}

fn flood(_: u64) -> BytesMut {
    packet_in(PORT, &datagram(66, 9, &[0; 18]))
}

/// Returns a packet from one of a thousand addresses to a known host at another port; each causes a flow.
fn flow(n: u64) -> BytesMut {
    let [.., high, low] = (n % 1_000).to_be_bytes();
    let mut packet = datagram(66, 2, &[0; 18]);
    packet[6..12].copy_from_slice(&[2, 7, 7, 7, high, low]);
    packet[34..36].copy_from_slice(&(n as u16).to_be_bytes());
    packet_in(PORT, &packet)
}

/// Returns the `n`-th event of a port that repeatedly goes down and comes up, with packets of its hosts in
/// between.
fn join_and_leave(n: u64) -> BytesMut {
    let state = match n % 40 {
        0 => PortState(PortState::LINK_DOWN),
        20 => PortState(0),
        _ => return forged_address(n % 50),
    };
    let mut port = Port::new(PortNo(PORT), MacAddress([2, 9, 0, 0, 0, 1]), PortName::from("eth"));
    port.state = state;
    let status = Message::PortStatus(PortStatus { reason: PortReason::Modify, port });
    let mut out = BytesMut::new();

    status.encode_into(Version::V1_0, 0, &mut out).expect("fits");
    out
}
