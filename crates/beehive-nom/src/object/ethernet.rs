//! Parses the Ethernet header of a packet, with bounds checks.

use crate::object::{Mac, Vlan};
use serde::{Deserialize, Serialize};

const TPID_CUSTOMER: u16 = 0x8100;
const TPID_SERVICE: u16 = 0x88a8;
/// The Ethernet type of LLDP.
pub const LLDP: u16 = 0x88cc;

/// The outermost VLAN tag of a frame, or its absence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Tag {
    /// No tag.
    #[default]
    Untagged,
    /// A tag with this VLAN identifier. Identifier 0 means a priority tag.
    Id(Vlan),
}

impl Tag {
    /// Returns the VLAN to which the frame belongs.
    #[inline]
    pub const fn vlan(self) -> Vlan {
        match self {
            Tag::Untagged => Vlan::NONE,
            Tag::Id(vlan) => vlan,
        }
    }
}

/// The header of an Ethernet frame (IEEE 802.3, 802.1Q).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ethernet {
    /// The destination address.
    pub destination: Mac,
    /// The source address.
    pub source: Mac,
    /// The outermost VLAN tag.
    pub tag: Tag,
    /// The Ethernet type after the outermost tag. A value below 0x600 is a length.
    pub ethertype: u16,
}

impl Ethernet {
    /// Parses the header at the start of `frame`. Returns `None` if the frame is too short.
    #[inline]
    pub fn read(frame: &[u8]) -> Option<Ethernet> {
        let (head, rest) = frame.split_first_chunk::<14>()?;
        let [a, b, c, d, e, f, g, h, i, j, k, l, high, low] = *head;
        let outer = u16::from_be_bytes([high, low]);
        let (tag, ethertype) = if outer == TPID_CUSTOMER || outer == TPID_SERVICE {
            let [tci_high, tci_low, high, low] = *rest.first_chunk::<4>()?;
            let id = u16::from_be_bytes([tci_high, tci_low]) & 0x0fff;
            (Tag::Id(Vlan(id)), u16::from_be_bytes([high, low]))
        } else {
            (Tag::Untagged, outer)
        };

        Some(Ethernet {
            destination: Mac([a, b, c, d, e, f]),
            source: Mac([g, h, i, j, k, l]),
            tag,
            ethertype,
        })
    }

    /// Returns whether a bridge may learn from the frame and forward it. This is so if the source is a single
    /// station and the frame is not addressed to the bridge itself (LLDP, spanning tree and the other
    /// reserved groups).
    #[inline]
    pub fn is_bridged(&self) -> bool {
        !self.source.is_multicast()
            && self.source != Mac::ZERO
            && !self.destination.is_bridge_reserved()
            && self.ethertype != LLDP
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn frame(destination: Mac, source: Mac, rest: &[u8]) -> Vec<u8> {
        [&destination.0[..], &source.0[..], rest].concat()
    }

    #[test]
    fn tags_are_seen() {
        let plain = Ethernet::read(&frame(B, A, &[8, 0, 0x45])).unwrap();
        assert_eq!(
            (plain.destination, plain.source, plain.tag, plain.ethertype),
            (B, A, Tag::Untagged, 0x0800)
        );
        let tagged = Ethernet::read(&frame(B, A, &[0x81, 0, 0xf0, 7, 0x86, 0xdd])).unwrap();
        assert_eq!((tagged.tag, tagged.ethertype), (Tag::Id(Vlan(7)), 0x86dd));
        let service = Ethernet::read(&frame(B, A, &[0x88, 0xa8, 0, 9, 0x81, 0])).unwrap();

        assert_eq!(service.tag.vlan(), Vlan(9));
    }

    #[test]
    fn what_is_for_the_bridge_is_not_bridged() {
        let bridged = |d, s, rest: &[u8]| Ethernet::read(&frame(d, s, rest)).unwrap().is_bridged();
        assert!(bridged(B, A, &[8, 0]) && bridged(Mac::BROADCAST, A, &[8, 6]));
        assert!(!bridged(B, Mac::BROADCAST, &[8, 0]));
        assert!(!bridged(B, Mac::ZERO, &[8, 0]));
        assert!(!bridged(Mac([1, 0x80, 0xc2, 0, 0, 3]), A, &[8, 0]));
        assert!(!bridged(B, A, &[0x88, 0xcc]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let read = Ethernet::read(&bytes);
            let tagged = bytes.len() >= 14 && matches!(bytes[12..14], [0x81, 0] | [0x88, 0xa8]);
            prop_assert_eq!(read.is_some(), bytes.len() >= if tagged { 18 } else { 14 });
        }
    }
}
