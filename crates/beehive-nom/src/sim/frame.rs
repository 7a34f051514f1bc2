//! Builds and modifies Ethernet frames.

use crate::object::{Mac, Tag};
use bytes::Bytes;

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
