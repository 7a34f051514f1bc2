//! The LLDP frame (IEEE 802.1AB) that discovers links, with an authenticated TLV.
//!
//! ```text
//! type 1  chassis, type 2 port, type 3 time to live: required by the standard; only people read them
//! type 127 organization be:e1:00, kind 1:
//!         node 8 | port 4 | time 8 | nonce 8 | keyed hash (BLAKE3) of these 28 bytes 32
//! type 0  end
//! ```

use crate::object::{LLDP, Mac, NodeId, PortId, PortNo};
use beehive::Time;
use bytes::{BufMut, Bytes, BytesMut};

/// The nearest-bridge group address, to which no bridge forwards frames (IEEE 802.1AB, 7.1).
const DESTINATION: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
/// The source address, which is locally administered, so no host has it.
const SOURCE: Mac = Mac([0x02, 0xbe, 0xe1, 0, 0, 1]);
/// Organization and subtype of the authenticated TLV.
const OURS: [u8; 4] = [0xbe, 0xe1, 0x00, 1];
const SIGNED: usize = 28;
const TYPE_END: u8 = 0;
const TYPE_OURS: u8 = 127;
/// Subtype of chassis and port ids chosen freely by the sender (IEEE 802.1AB, 8.5.2.2 and 8.5.3.2).
const LOCALLY_ASSIGNED: u8 = 7;

/// The content of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The port from which the probe was sent.
    pub from: PortId,
    /// The time at which the probe was sent.
    pub at: Time,
    /// A number that identifies this probe. No number is used twice.
    pub nonce: u64,
}

/// The reason why a frame is not a valid probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeError {
    /// The frame is malformed, or another system's LLDP frame.
    Foreign,
    /// The frame has the form of a probe but a wrong hash.
    Forged,
}

/// The secret key of probes, known only to the hives of one cluster.
#[derive(Clone)]
pub struct Key([u8; 32]);

/// Does not show the secret.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

impl Key {
    /// Derives the key from a secret.
    pub fn of(secret: &str) -> Key {
        Key(blake3::derive_key("beehive discovery probe 1", secret.as_bytes()))
    }
}

impl Probe {
    /// Encodes the frame.
    pub fn frame(&self, key: &Key, ttl_s: u16) -> Bytes {
        let Probe { from: PortId { node, port }, at, nonce } = *self;
        let mut out = BytesMut::with_capacity(160);
        out.put_slice(&DESTINATION.0);
        out.put_slice(&SOURCE.0);
        out.put_u16(LLDP);

        let name = |out: &mut BytesMut, kind: u8, name: String| {
            put_header(out, kind, 1 + name.len());
            out.put_u8(LOCALLY_ASSIGNED);
            out.put_slice(name.as_bytes());
        };
        name(&mut out, 1, format!("dpid:{node}"));
        name(&mut out, 2, port.to_string());
        put_header(&mut out, 3, 2);
        out.put_u16(ttl_s);

        let mut signed = [0; SIGNED];
        {
            let mut part = &mut signed[..];
            part.put_u64(node.0);
            part.put_u32(port.0);
            part.put_u64(at.as_nanoseconds());
            part.put_u64(nonce);
        }

        put_header(&mut out, TYPE_OURS, OURS.len() + SIGNED + blake3::OUT_LEN);
        out.put_slice(&OURS);
        out.put_slice(&signed);
        out.put_slice(blake3::keyed_hash(&key.0, &signed).as_bytes());
        put_header(&mut out, TYPE_END, 0);

        out.freeze()
    }

    /// Decodes and verifies the probe in a frame.
    ///
    /// # Errors
    ///
    /// Returns an error if the frame is malformed, another system's LLDP frame, or a forged probe.
    pub fn read(frame: &[u8], key: &Key) -> Result<Probe, ProbeError> {
        let mut rest = frame.get(14..).ok_or(ProbeError::Foreign)?;
        // terminates, because every element takes at least two bytes
        while let Some(([high, low], after)) = rest.split_first_chunk::<2>() {
            let (kind, length) = (high >> 1, usize::from(high & 1) << 8 | usize::from(*low));
            let (Some(value), Some(next)) = (after.get(..length), after.get(length..)) else { break };
            rest = next;
            match (kind, value.strip_prefix(&OURS)) {
                (TYPE_END, _) => break,
                (TYPE_OURS, Some(ours)) => return Self::verify(ours, key),
                _ => {}
            }
        }

        Err(ProbeError::Foreign)
    }

    fn verify(ours: &[u8], key: &Key) -> Result<Probe, ProbeError> {
        let (signed, hash) = ours.split_first_chunk::<SIGNED>().ok_or(ProbeError::Forged)?;
        let hash = hash.first_chunk::<{ blake3::OUT_LEN }>().ok_or(ProbeError::Forged)?;
        // this comparison takes constant time
        if blake3::keyed_hash(&key.0, signed) != *hash {
            return Err(ProbeError::Forged);
        }

        let mut part = &signed[..];
        use bytes::Buf;
        let (node, port) = (NodeId(part.get_u64()), PortNo(part.get_u32()));
        let (at, nonce) = (Time::from_nanoseconds(part.get_u64()), part.get_u64());

        Ok(Probe { from: PortId { node, port }, at, nonce })
    }
}

fn put_header(out: &mut BytesMut, kind: u8, length: usize) {
    out.put_u16(u16::from(kind) << 9 | length as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn probe() -> Probe {
        let from = PortId { node: NodeId(7), port: PortNo(3) };
        Probe { from, at: Time::from_nanoseconds(99), nonce: 12 }
    }

    #[test]
    fn only_who_knows_the_secret_makes_one() {
        let (key, other) = (Key::of("secret"), Key::of("Secret"));
        let frame = probe().frame(&key, 3);
        assert!(frame.len() <= 160);
        assert_eq!(Probe::read(&frame, &key), Ok(probe()));
        assert_eq!(Probe::read(&frame, &other), Err(ProbeError::Forged));
        let header = crate::object::Ethernet::read(&frame).unwrap();
        assert!(header.ethertype == LLDP && !header.is_bridged());
    }

    #[test]
    fn no_byte_of_it_may_differ() {
        let key = Key::of("secret");
        let frame = probe().frame(&key, 3);
        let start = frame.windows(4).position(|w| w == OURS).unwrap() + 4;

        for at in start..start + SIGNED + blake3::OUT_LEN {
            let mut forged = frame.to_vec();
            forged[at] ^= 1;
            assert_eq!(Probe::read(&forged, &key), Err(ProbeError::Forged), "byte {at}");
        }

        for length in 0..frame.len() - 2 {
            assert!(Probe::read(&frame[..length], &key).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(rest in proptest::collection::vec(any::<u8>(), 0..600)) {
            let frame = [&DESTINATION.0[..], &SOURCE.0, &LLDP.to_be_bytes(), &rest].concat();
            prop_assert!(Probe::read(&frame, &Key::of("secret")).is_err());
        }
    }
}
