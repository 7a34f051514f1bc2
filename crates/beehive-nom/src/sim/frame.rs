//! Builds and modifies Ethernet frames.

use crate::object::{Conversation, Mac, Tag};
use bytes::Bytes;
use etherparse::PacketBuilder;
use std::net::IpAddr;

/// Length of the destination and source addresses, in bytes.
const ADDRESSES: usize = 12;
/// Length of a VLAN tag, in bytes.
const TAG: usize = 4;

/// Builds an Ethernet frame of type IPv4 with an arbitrary payload.
pub fn frame(destination: Mac, source: Mac, tag: Tag, payload: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(ADDRESSES + TAG + 2 + payload.len());
    bytes.extend_from_slice(&destination.0);
    bytes.extend_from_slice(&source.0);

    if let Tag::Id(vlan) = tag {
        bytes.extend_from_slice(&[0x81, 0]);
        bytes.extend_from_slice(&vlan.0.to_be_bytes());
    }

    bytes.extend_from_slice(&[8, 0]);
    bytes.extend_from_slice(payload);
    bytes.into()
}

/// Builds an untagged frame with a packet of a TCP or UDP conversation; for TCP it is the segment that opens the
/// connection. Returns `None` for other protocols, for addresses of different IP versions, and if the payload is too
/// long.
///
/// ```
/// use beehive_nom::object::{Conversation, Mac, Traffic};
/// use beehive_nom::sim::packet;
/// let conversation = Conversation {
///     source: [10, 0, 0, 1].into(),
///     destination: [10, 0, 0, 2].into(),
///     protocol: Conversation::TCP,
///     source_port: 40_000,
///     destination_port: 80,
/// };
/// let (ann, bob) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
/// let frame = packet(bob, ann, &conversation, b"").expect("TCP over IPv4");
/// assert_eq!(Traffic::read(&frame), Traffic::Conversation(conversation));
/// ```
pub fn packet(destination: Mac, source: Mac, conversation: &Conversation, payload: &[u8]) -> Option<Bytes> {
    const HOPS: u8 = 64;
    let step = PacketBuilder::ethernet2(source.0, destination.0);
    let step = match (conversation.source, conversation.destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => step.ipv4(from.octets(), to.octets(), HOPS),
        (IpAddr::V6(from), IpAddr::V6(to)) => step.ipv6(from.octets(), to.octets(), HOPS),
        _ => return None,
    };

    let (from, to) = (conversation.source_port, conversation.destination_port);
    let mut bytes = Vec::new();
    let written = match conversation.protocol {
        Conversation::TCP => step.tcp(from, to, 0, u16::MAX).syn().write(&mut bytes, payload),
        Conversation::UDP => step.udp(from, to).write(&mut bytes, payload),
        _ => return None,
    };

    written.ok()?;
    Some(bytes.into())
}

/// Returns `frame` with the address at byte `at` replaced.
pub(super) fn with_address(frame: &Bytes, at: usize, mac: Mac) -> Bytes {
    let mut bytes = frame.to_vec();
    if let Some(place) = bytes.get_mut(at..at + 6) {
        place.copy_from_slice(&mac.0)
    }
    bytes.into()
}

/// Returns `frame` without its VLAN tag.
pub(super) fn without_tag(frame: &Bytes) -> Bytes {
    match (frame.get(..ADDRESSES), frame.get(ADDRESSES + TAG..)) {
        (Some(addresses), Some(rest)) => [addresses, rest].concat().into(),
        _ => frame.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Traffic;

    #[test]
    fn a_packet_is_read_as_its_conversation() {
        let (four, six) = ([[10, 0, 0, 1], [10, 0, 0, 2]], [[1; 16], [2; 16]]);
        let (four, six) = (four.map(IpAddr::from), six.map(IpAddr::from));
        let conversation = |[source, destination]: [IpAddr; 2], protocol| Conversation {
            source,
            destination,
            protocol,
            source_port: 1_000,
            destination_port: 53,
        };

        for addresses in [four, six] {
            for protocol in [Conversation::TCP, Conversation::UDP] {
                let conversation = conversation(addresses, protocol);
                let frame = packet(Mac([2; 6]), Mac([4; 6]), &conversation, b"hello").unwrap();
                assert_eq!(Traffic::read(&frame), Traffic::Conversation(conversation));
                assert!(frame.starts_with(&[[2; 6], [4; 6]].concat()) && frame.ends_with(b"hello"));
            }
        }

        let wrong =
            [conversation(four, Conversation::ICMP), conversation([four[0], six[0]], Conversation::UDP)];
        assert!(wrong.iter().all(|wrong| packet(Mac([2; 6]), Mac([4; 6]), wrong, b"").is_none()));
    }
}
