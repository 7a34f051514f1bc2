//! Extracts a host's IP address from a packet in which the host announces it (ARP, IPv6 neighbor discovery) or a DHCP
//! server grants it.

use crate::object::{Ethernet, Mac, Station};
use bytes::{BufMut, Bytes, BytesMut};
use etherparse::{
    ArpHardwareId, ArpOperation, ArpPacket, EtherType, LaxNetSlice, LaxSlicedPacket, PacketBuilder,
};
use etherparse::{TransportSlice, UdpSlice};
use std::net::{IpAddr, Ipv4Addr};

/// Source address of ARP probes from the controller. It is locally administered, so no host has it.
pub const PROBE_SOURCE: Mac = Mac([0x02, 0xbe, 0xe1, 0, 0, 2]);
/// UDP port of DHCP servers (RFC 2131, 4.1).
const DHCP_SERVER: u16 = 67;
/// Magic cookie before the options (RFC 2131, 3).
const DHCP_COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Returns a host, and the IP address announced by the host or granted to it by a DHCP server in `frame`.
pub fn read(frame: &[u8]) -> Option<(Station, IpAddr)> {
    let header = Ethernet::read(frame)?;
    let packet = LaxSlicedPacket::from_ethernet(frame).ok()?;
    let station = |mac: Mac| Station::new(header.tag.vlan(), mac);
    let claim = match (&packet.net, &packet.transport) {
        (Some(LaxNetSlice::Arp(arp)), _) => {
            let mac = Mac(*arp.sender_hw_addr().first_chunk()?);
            let address = Ipv4Addr::from(*arp.sender_protocol_addr().first_chunk::<4>()?);
            // ignores ARP packets sent on behalf of another host
            (mac == header.source).then_some((station(mac), IpAddr::V4(address)))?
        }
        (Some(LaxNetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(icmp)))
            if ip.header().hop_limit() == 255 =>
        {
            let address = match icmp.type_u8() {
                // a solicitation, whose source is unspecified during duplicate address detection (RFC 4862, 5.4.2)
                135 => ip.header().source_addr(),
                // an advertisement, whose target is the sender's address (RFC 4861, 4.4)
                136 => (*icmp.payload().first_chunk::<16>()?).into(),
                _ => return None,
            };
            (station(header.source), IpAddr::V6(address))
        }
        (Some(LaxNetSlice::Ipv4(_)), Some(TransportSlice::Udp(udp))) => {
            let (mac, address) = dhcp_grant(udp)?;
            (station(mac), IpAddr::V4(address))
        }
        _ => return None,
    };

    (!claim.1.is_unspecified() && !claim.1.is_multicast() && !claim.0.mac().is_multicast()).then_some(claim)
}

/// Returns the host and the address in a DHCP acknowledgment.
fn dhcp_grant(udp: &UdpSlice<'_>) -> Option<(Mac, Ipv4Addr)> {
    let message = udp.payload();
    let is_reply = udp.source_port() == DHCP_SERVER && message.first() == Some(&2);
    let [kind, length] = *message.get(1..3)?.first_chunk::<2>()?;

    if !is_reply || (kind, length) != (1, 6) || message.get(236..240)? != DHCP_COOKIE {
        return None;
    }

    // Option 53 is the message type, and its value 5 is an acknowledgment. The loop terminates, because each
    // iteration consumes at least one byte.
    let mut options = message.get(240..)?;
    while let Some((code, rest)) = options.split_first() {
        match code {
            0 => options = rest,
            255 => return None,
            _ => {
                let (length, rest) = rest.split_first()?;
                let value = rest.get(..usize::from(*length))?;
                if (*code, value) == (53, &[5]) {
                    let address = Ipv4Addr::from(*message.get(16..20)?.first_chunk::<4>()?);
                    return Some((Mac(*message.get(28..34)?.first_chunk()?), address));
                }
                options = rest.get(usize::from(*length)..)?;
            }
        }
    }

    None
}

/// Builds a unicast ARP probe that asks `station` whether it has `address`. The probe does not change any ARP cache
/// (RFC 5227, 1.1). Returns `None` for IPv6, which does not use ARP.
pub fn address_probe(station: Station, address: IpAddr) -> Option<Bytes> {
    let IpAddr::V4(address) = address else { return None };

    let (from, to) = (PROBE_SOURCE.0, station.mac().0);
    let (kind, protocol) = (ArpHardwareId::ETHERNET, EtherType::IPV4);
    let unset = Ipv4Addr::UNSPECIFIED.octets();
    let arp =
        ArpPacket::new(kind, protocol, ArpOperation::REQUEST, &from, &unset, &to, &address.octets()).ok()?;
    let mut out = BytesMut::new().writer();
    let builder = PacketBuilder::ethernet2(from, to);

    match etherparse::VlanId::try_new(station.vlan().0).ok().filter(|vlan| vlan.value() != 0) {
        Some(vlan) => builder.single_vlan(vlan).arp(arp).write(&mut out).ok()?,
        None => builder.arp(arp).write(&mut out).ok()?,
    }

    Some(out.into_inner().freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Vlan;
    use proptest::prelude::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

    fn arp(sender: Mac, address: [u8; 4]) -> Vec<u8> {
        let arp = ArpPacket::new(
            ArpHardwareId::ETHERNET,
            EtherType::IPV4,
            ArpOperation::REPLY,
            &sender.0,
            &address,
            &[0; 6],
            &[0; 4],
        );

        let mut out = Vec::new();
        PacketBuilder::ethernet2(MAC.0, [0xff; 6]).arp(arp.unwrap()).write(&mut out).unwrap();
        out
    }

    #[test]
    fn arp_is_believed_of_its_sender_only() {
        let station = Station::new(Vlan::NONE, MAC);
        assert_eq!(read(&arp(MAC, [10, 0, 0, 7])), Some((station, IpAddr::from([10, 0, 0, 7]))));
        assert_eq!(read(&arp(MAC, [0; 4])), None, "the host only probes an address");
        assert_eq!(read(&arp(Mac([2, 0, 0, 0, 0, 8]), [10, 0, 0, 7])), None);
    }

    #[test]
    fn neighbor_advertisements() {
        let kind = etherparse::Icmpv6Type::Unknown { type_u8: 136, code_u8: 0, bytes5to8: [0; 4] };
        let address = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        let frame = |hops| {
            let mut out = Vec::new();
            let builder = PacketBuilder::ethernet2(MAC.0, [0x33; 6]).ipv6([1; 16], [2; 16], hops);
            builder.icmpv6(kind).write(&mut out, &address).unwrap();
            out
        };

        assert_eq!(read(&frame(255)).map(|claim| claim.1), Some(IpAddr::from(address)));
        assert_eq!(read(&frame(64)), None, "the packet has passed through a router");
    }

    #[test]
    fn what_a_dhcp_server_grants() {
        let message = |kind: u8| {
            let mut message = vec![0; 240];
            message[..3].copy_from_slice(&[2, 1, 6]);
            message[16..20].copy_from_slice(&[10, 0, 0, 50]);
            message[28..34].copy_from_slice(&MAC.0);
            message[236..].copy_from_slice(&DHCP_COOKIE);
            message.extend([0, 54, 4, 10, 0, 0, 1, 53, 1, kind, 255]);
            let mut out = Vec::new();
            let builder =
                PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [0xff; 6]).ipv4([10, 0, 0, 1], [255; 4], 64);
            builder.udp(67, 68).write(&mut out, &message).unwrap();
            out
        };

        assert_eq!(read(&message(5)), Some((Station::new(Vlan::NONE, MAC), IpAddr::from([10, 0, 0, 50]))));
        assert_eq!(read(&message(2)), None, "an offer does not grant the address");
    }

    #[test]
    fn a_question_has_no_address_of_its_own() {
        let station = Station::new(Vlan(7), MAC);
        let frame = address_probe(station, IpAddr::from([10, 0, 0, 7])).unwrap();
        let header = Ethernet::read(&frame).unwrap();
        assert_eq!((header.destination, header.source, header.tag.vlan()), (MAC, PROBE_SOURCE, Vlan(7)));
        assert_eq!(read(&frame), None, "the probe does not announce an address");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            kind in prop_oneof![Just([8u8, 0]), Just([0x86, 0xdd]), Just([8, 6])],
            rest in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let _ = read(&[&[2u8; 12][..], &kind, &rest].concat());
        }
    }
}
