//! Determines the conversation (five-tuple) to which a packet belongs.

use super::selector::Protocol;
use etherparse::{ArpHardwareId, EtherType, Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// One direction of a conversation between two hosts: addresses, protocol and ports (the five-tuple).
///
/// For protocols without ports, both ports are zero. For an ICMP echo request, the source port is the identifier and
/// the destination port is zero; for an echo reply, it is the other way round. Therefore a reply is the reverse of its
/// request, and no request is the reverse of another request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Conversation {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub destination: IpAddr,
    /// The IP protocol number, such as 6 for TCP and 17 for UDP.
    pub protocol: u8,
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
}

impl Conversation {
    /// Protocol number of ICMP.
    pub const ICMP: u8 = 1;
    /// Protocol number of TCP.
    pub const TCP: u8 = 6;
    /// Protocol number of UDP.
    pub const UDP: u8 = 17;
    /// Protocol number of ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// The smallest value, for range queries.
    pub const MIN: Conversation = Conversation {
        source: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        protocol: 0,
        source_port: 0,
        destination_port: 0,
    };

    /// Returns the other direction.
    pub const fn reversed(self) -> Conversation {
        Conversation {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            ..self
        }
    }

    /// Returns whether the protocol has ports that a flow can match.
    pub const fn has_ports(&self) -> bool {
        matches!(self.protocol, Self::TCP | Self::UDP)
    }

    /// Returns the Ethernet type of the conversation's packets.
    pub const fn ethertype(&self) -> u16 {
        match self.source {
            IpAddr::V4(_) => EtherType::IPV4.0,
            IpAddr::V6(_) => EtherType::IPV6.0,
        }
    }
}

impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conversation { source, destination, source_port, destination_port, .. } = self;
        match self.protocol {
            // an ICMP echo has an identifier instead of ports
            Self::ICMP | Self::ICMPV6 => {
                let number = source_port.max(destination_port);
                write!(f, "{source} to {destination} by icmp, identifier {number}")
            }
            number if self.has_ports() => {
                let protocol = Protocol::Number(number);
                write!(
                    f,
                    "{source} port {source_port} to {destination} port {destination_port} by {protocol}"
                )
            }
            number => write!(f, "{source} to {destination} by protocol {number}"),
        }
    }
}

/// A packet's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Traffic {
    /// ARP or IPv6 neighbor discovery, without which hosts cannot find each other.
    AddressResolution,
    /// A packet of a conversation, or the first fragment of one.
    Conversation(Conversation),
    /// A fragment other than the first one. It does not contain the ports, so they are zero here.
    Fragment(Conversation),
    /// An ICMP error caused by a packet of this conversation.
    IcmpError(Conversation),
    /// Any other packet: neither IP nor ARP, or malformed.
    Other,
}

impl Traffic {
    /// Classifies an Ethernet frame, which may be truncated. This function terminates on any input, and never reads
    /// out of bounds.
    pub fn read(frame: &[u8]) -> Traffic {
        let Ok(packet) = LaxSlicedPacket::from_ethernet(frame) else { return Traffic::Other };
        if let Some(LaxNetSlice::Arp(arp)) = &packet.net {
            let kinds =
                (arp.hw_addr_type(), arp.proto_addr_type()) == (ArpHardwareId::ETHERNET, EtherType::IPV4);
            let sizes = (arp.hw_addr_size(), arp.proto_addr_size()) == (6, 4);
            return if kinds && sizes { Traffic::AddressResolution } else { Traffic::Other };
        }
        read_internet(&packet, true)
    }
}

/// Classifies an IP packet. `outermost` is false if the packet is quoted in an ICMP error.
fn read_internet(packet: &LaxSlicedPacket<'_>, outermost: bool) -> Traffic {
    let (source, destination, hops, offset, payload): (IpAddr, IpAddr, _, _, _) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let offset = header.fragments_offset().value();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
                header.ttl(),
                offset,
                ip.payload(),
            )
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let offsets = ip.extensions().clone().into_iter().filter_map(|extension| match extension {
                Ipv6ExtensionSlice::Fragment(fragment) => Some(fragment_offset(fragment.slice())),
                _ => None,
            });
            let (source, destination) = (header.source_addr().into(), header.destination_addr().into());
            (source, destination, header.hop_limit(), offsets.max().unwrap_or(0), ip.payload())
        }
        _ => return Traffic::Other,
    };

    let protocol = payload.ip_number.0;
    let mut conversation =
        Conversation { source, destination, protocol, source_port: 0, destination_port: 0 };
    if offset != 0 {
        return Traffic::Fragment(conversation);
    }

    match protocol {
        Conversation::TCP | Conversation::UDP => {
            let Some([a, b, c, d]) = payload.payload.first_chunk::<4>() else { return Traffic::Other };
            conversation.source_port = u16::from_be_bytes([*a, *b]);
            conversation.destination_port = u16::from_be_bytes([*c, *d]);
        }
        Conversation::ICMP | Conversation::ICMPV6 => {
            let Some(([kind, _, _, _, high, low, _, _], about)) = payload.payload.split_first_chunk::<8>()
            else {
                return Traffic::Other;
            };

            // replaces identifier 0 with 1, because port 0 marks the other end of the conversation
            let identifier = u16::from_be_bytes([*high, *low]).max(1);
            match (protocol == Conversation::ICMP, *kind) {
                (true, 8) | (false, 128) => conversation.source_port = identifier,
                (true, 0) | (false, 129) => conversation.destination_port = identifier,
                (true, 3 | 4 | 11 | 12) | (false, 1..=4) if outermost => {
                    return read_icmp_error(about, destination);
                }
                // RFC 4861, 7.1: a packet with a lower hop limit has passed through a router and is not neighbor
                // discovery
                (false, 133..=136) if hops == 255 && outermost => return Traffic::AddressResolution,
                // uses two different ports, because a conversation that equals its own reverse would count as its own
                // reply
                _ => (conversation.source_port, conversation.destination_port) = (u16::from(*kind), u16::MAX),
            }
        }
        _ if packet.stop_err.is_some() => return Traffic::Other,
        _ => {}
    }

    Traffic::Conversation(conversation)
}

/// Returns the offset of a fragment in units of eight bytes, which is the upper 13 bits of the second word (RFC 8200,
/// 4.5). etherparse 0.19 uses other bits, and mistakes first fragments for later ones.
fn fragment_offset(header: &[u8]) -> u16 {
    let word = header.get(2..4).and_then(|word| word.first_chunk::<2>());
    word.map_or(0, |word| u16::from_be_bytes(*word) >> 3)
}

/// Classifies an ICMP error sent to the host `told` because of the packet `about`.
fn read_icmp_error(about: &[u8], told: IpAddr) -> Traffic {
    let Ok(packet) = LaxSlicedPacket::from_ip(about) else { return Traffic::Other };
    match read_internet(&packet, false) {
        // an error is valid only if it goes to the sender of the packet (RFC 792; RFC 4443, 2.2)
        Traffic::Conversation(conversation) if conversation.source == told => {
            Traffic::IcmpError(conversation)
        }
        _ => Traffic::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];

    fn conversation(protocol: u8, source_port: u16, destination_port: u16) -> Conversation {
        Conversation { source: A.into(), destination: B.into(), protocol, source_port, destination_port }
    }

    #[test]
    fn conversations_are_shown_as_rules_are_written() {
        let shown = |protocol, from, to| conversation(protocol, from, to).to_string();
        assert_eq!(shown(6, 1000, 80), "10.0.0.1 port 1000 to 10.0.0.2 port 80 by tcp");
        assert_eq!(shown(17, 53, 9), "10.0.0.1 port 53 to 10.0.0.2 port 9 by udp");
        // the request and its reply
        assert_eq!(shown(1, 7, 0), "10.0.0.1 to 10.0.0.2 by icmp, identifier 7");
        assert_eq!(shown(1, 0, 7), "10.0.0.1 to 10.0.0.2 by icmp, identifier 7");
        assert_eq!(shown(47, 0, 0), "10.0.0.1 to 10.0.0.2 by protocol 47");
    }

    fn bytes(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        build(&mut bytes);
        bytes
    }

    fn ethernet() -> etherparse::PacketBuilderStep<etherparse::Ethernet2Header> {
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
    }

    fn udp(payload: &[u8]) -> Vec<u8> {
        bytes(|b| ethernet().ipv4(A, B, 64).udp(1000, 53).write(b, payload).unwrap())
    }

    #[test]
    fn ports_are_read_behind_tags() {
        assert_eq!(Traffic::read(&udp(b"x")), Traffic::Conversation(conversation(17, 1000, 53)));
        let vlan = etherparse::VlanId::try_new(7).unwrap();
        let tcp = |b: &mut Vec<u8>| {
            ethernet().single_vlan(vlan).ipv4(A, B, 64).tcp(9, 80, 1, 1).write(b, b"").unwrap()
        };
        assert_eq!(Traffic::read(&bytes(tcp)), Traffic::Conversation(conversation(6, 9, 80)));
        let six = |b: &mut Vec<u8>| ethernet().ipv6([1; 16], [2; 16], 9).udp(1, 2).write(b, b"").unwrap();
        let Traffic::Conversation(read) = Traffic::read(&bytes(six)) else { panic!() };

        assert_eq!((read.source, read.ethertype()), (IpAddr::from([1; 16]), 0x86dd));
    }

    #[test]
    fn an_answer_is_the_reverse_of_its_question_and_a_question_is_not() {
        let echo = |from, to, ask: bool, id| {
            let ip = ethernet().ipv4(from, to, 64);
            let frame = bytes(|b| match ask {
                true => ip.icmpv4_echo_request(id, 1).write(b, b"").unwrap(),
                false => ip.icmpv4_echo_reply(id, 1).write(b, b"").unwrap(),
            });
            match Traffic::read(&frame) {
                Traffic::Conversation(conversation) => conversation,
                other => panic!("{other:?}"),
            }
        };

        for id in [0, 1, 8, 0xffff] {
            let question = echo(A, B, true, id);
            assert_eq!(question.reversed(), echo(B, A, false, id));
            for other in [0, 1, 8, 0xffff] {
                assert_ne!(question.reversed(), echo(B, A, true, other));
            }
        }
    }

    #[test]
    fn fragments_and_failures() {
        let mut first = udp(b"12345678");
        first[14 + 6] |= 0x20; // more fragments
        assert_eq!(Traffic::read(&first), Traffic::Conversation(conversation(17, 1000, 53)));
        let mut later = first.clone();
        later[14 + 7] = 2;
        assert_eq!(Traffic::read(&later), Traffic::Fragment(conversation(17, 0, 0)));

        let unreachable =
            etherparse::Icmpv4Type::DestinationUnreachable(etherparse::icmpv4::DestUnreachableHeader::Port);
        let about = udp(b"x")[14..].to_vec();
        let frame = bytes(|b| ethernet().ipv4(B, A, 64).icmpv4(unreachable).write(b, &about).unwrap());
        assert_eq!(Traffic::read(&frame), Traffic::IcmpError(conversation(17, 1000, 53)));
    }

    #[test]
    fn fragments_of_ipv6() {
        let udp = [0x13, 0x88, 0, 53, 0, 9, 0, 0, 1];
        let fragment = |offset: u16, more: bool| {
            let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
            let rest = [&[17, 0, high, low, 0, 0, 0, 9][..], &udp].concat();
            let frame = bytes(|b| {
                let ip = ethernet().ipv6([1; 16], [2; 16], 9);
                ip.write(b, etherparse::IpNumber::IPV6_FRAGMENTATION_HEADER, &rest).unwrap()
            });
            Traffic::read(&frame)
        };

        for more in [true, false] {
            let Traffic::Conversation(read) = fragment(0, more) else { panic!("more: {more}") };
            assert_eq!((read.source_port, read.destination_port, read.protocol), (5000, 53, 17));
            for offset in [1, 4, 8, 16, 32, 185, 0x1fff] {
                let Traffic::Fragment(read) = fragment(offset, more) else {
                    panic!("{offset}, more: {more}")
                };
                assert_eq!((read.source_port, read.destination_port, read.protocol), (0, 0, 17));
            }
        }
    }

    #[test]
    fn address_resolution_is_of_ethernet_and_ipv4() {
        let arp =
            |kinds: [u8; 6]| Traffic::read(&[&[2; 12][..], &[8, 6], &kinds, &[0, 1], &[0; 200]].concat());
        assert_eq!(arp([0, 1, 8, 0, 6, 4]), Traffic::AddressResolution);
        for other in [[0, 2, 8, 0, 6, 4], [0, 1, 8, 6, 6, 4], [0, 1, 8, 0, 60, 4], [0, 1, 8, 0, 6, 40]] {
            assert_eq!(arp(other), Traffic::Other, "{other:?}");
        }
    }

    #[test]
    fn neighbors_come_from_the_same_link_only() {
        let solicit = etherparse::Icmpv6Type::Unknown { type_u8: 135, code_u8: 0, bytes5to8: [0; 4] };
        let frame =
            |hops| bytes(|b| ethernet().ipv6([1; 16], [2; 16], hops).icmpv6(solicit).write(b, b"").unwrap());
        assert_eq!(Traffic::read(&frame(255)), Traffic::AddressResolution);
        assert!(matches!(Traffic::read(&frame(254)), Traffic::Conversation(_)));
        let mut bad = udp(b"x");
        bad[14] = 0x44; // a header of 16 bytes
        assert_eq!(Traffic::read(&bad), Traffic::Other);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            kind in prop_oneof![Just([8u8, 0]), Just([0x86, 0xdd]), Just([0x81, 0]), Just([8, 6]), Just([0x88, 0x47])],
            rest in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let frame = [&[2u8; 12][..], &kind, &rest].concat();
            for length in 0..frame.len() {
                let _ = Traffic::read(&frame[..length]);
            }
        }
    }
}
