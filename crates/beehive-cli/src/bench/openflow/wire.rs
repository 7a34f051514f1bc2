//! Encodes the few OpenFlow 1.0 and 1.3 messages sent by a switch and parses the messages it receives.
//!
//! This module shares no code with `beehive-of`, so it can reveal errors there. Parsers return `None` if a field lies
//! outside its message. No function here panics on bytes from the network.

/// An OpenFlow version supported by emulated switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// OpenFlow 1.0, wire version 1.
    V10,
    /// OpenFlow 1.3, wire version 4.
    V13,
}

impl Version {
    /// Returns the version byte of the header.
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::V10 => 1,
            Self::V13 => 4,
        }
    }
}

/// Message types. The types without a prefix have the same number in both versions.
pub(super) mod kind {
    pub(crate) const HELLO: u8 = 0;
    pub(crate) const ERROR: u8 = 1;
    pub(crate) const ECHO_REQUEST: u8 = 2;
    pub(crate) const ECHO_REPLY: u8 = 3;
    pub(crate) const EXPERIMENTER: u8 = 4;
    pub(crate) const FEATURES_REQUEST: u8 = 5;
    pub(crate) const FEATURES_REPLY: u8 = 6;
    pub(crate) const GET_CONFIG_REQUEST: u8 = 7;
    pub(crate) const GET_CONFIG_REPLY: u8 = 8;
    pub(crate) const SET_CONFIG: u8 = 9;
    pub(crate) const PACKET_IN: u8 = 10;
    pub(crate) const PACKET_OUT: u8 = 13;
    pub(crate) const FLOW_MOD: u8 = 14;
    pub(crate) const V10_STATS_REQUEST: u8 = 16;
    pub(crate) const V10_STATS_REPLY: u8 = 17;
    pub(crate) const V10_BARRIER_REQUEST: u8 = 18;
    pub(crate) const V10_BARRIER_REPLY: u8 = 19;
    pub(crate) const V10_QUEUE_CONFIG_REQUEST: u8 = 20;
    pub(crate) const V10_QUEUE_CONFIG_REPLY: u8 = 21;
    pub(crate) const V13_MULTIPART_REQUEST: u8 = 18;
    pub(crate) const V13_MULTIPART_REPLY: u8 = 19;
    pub(crate) const V13_BARRIER_REQUEST: u8 = 20;
    pub(crate) const V13_BARRIER_REPLY: u8 = 21;
    pub(crate) const V13_QUEUE_CONFIG_REQUEST: u8 = 22;
    pub(crate) const V13_QUEUE_CONFIG_REPLY: u8 = 23;
    pub(crate) const V13_ROLE_REQUEST: u8 = 24;
    pub(crate) const V13_ROLE_REPLY: u8 = 25;
    pub(crate) const V13_ASYNC_REQUEST: u8 = 26;
    pub(crate) const V13_ASYNC_REPLY: u8 = 27;
}

/// Buffer id of a packet that is not buffered at the switch (`OFP_NO_BUFFER`).
pub(super) const NO_BUFFER: u32 = u32::MAX;
/// Length of the header in bytes.
pub(super) const HEADER_BYTES: usize = 8;
/// The role `OFPCR_ROLE_SLAVE` of OpenFlow 1.3, in which a controller gets no packet-ins.
pub(super) const ROLE_SLAVE: u32 = 3;

/// Returns the byte at offset `at`.
#[inline]
pub(super) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Returns the big-endian number at offset `at`.
#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// Returns the big-endian number at offset `at`.
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// Returns the big-endian number at offset `at`.
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The packet-out fields needed by the load generator.
pub(super) struct PacketOut<'a> {
    /// Id of the buffer released by the packet-out, or [`NO_BUFFER`].
    pub(super) buffer: u32,
    /// Port of the first output action, with reserved ports numbered as in 1.3. `None` if the packet is dropped.
    pub(super) port: Option<u32>,
    /// The packet.
    pub(super) frame: &'a [u8],
}

impl<'a> PacketOut<'a> {
    /// Parses a complete PACKET_OUT message (1.0 section 5.3.6, 1.3 section 7.3.7).
    #[inline]
    pub(super) fn parse(version: Version, message: &'a [u8]) -> Option<Self> {
        let (actions_bytes, actions_at) = match version {
            Version::V10 => (u16_at(message, 14)?, 16),
            Version::V13 => (u16_at(message, 16)?, 24),
        };
        let (actions, frame) = message.get(actions_at..)?.split_at_checked(usize::from(actions_bytes))?;
        Some(Self { buffer: u32_at(message, 8)?, port: first_output(version, actions)?, frame })
    }
}

/// Returns the port of the first OUTPUT action. The inner `None` means that there is no OUTPUT action, the outer
/// `None` that the list is malformed.
#[inline]
fn first_output(version: Version, mut actions: &[u8]) -> Option<Option<u32>> {
    while !actions.is_empty() {
        let length = usize::from(u16_at(actions, 2)?);
        if length < 8 || length > actions.len() {
            return None;
        }

        if u16_at(actions, 0)? == 0 {
            return Some(Some(match version {
                Version::V10 => widen_port(u16_at(actions, 4)?),
                Version::V13 => u32_at(actions, 4)?,
            }));
        }

        actions = actions.get(length..)?;
    }

    Some(None)
}

/// Converts a 1.0 port number to 1.3. Reserved ports (0xff00 and above) have the same low bits in both versions.
fn widen_port(port: u16) -> u32 {
    if port >= 0xff00 { 0xffff_0000 | u32::from(port) } else { u32::from(port) }
}

/// Returns the id of the buffer released by a FLOW_MOD message, or [`NO_BUFFER`].
#[inline]
pub(super) fn flow_mod_buffer(version: Version, message: &[u8]) -> Option<u32> {
    let (at, bytes_min) = match version {
        Version::V10 => (64, 72),
        Version::V13 => (32, 56),
    };
    if message.len() < bytes_min { None } else { u32_at(message, at) }
}

/// Returns whether a 1.3 FLOW_MOD adds a table-miss flow: table 0, command ADD, priority 0, empty match.
pub(super) fn adds_table_miss(message: &[u8]) -> bool {
    u16_at(message, 24) == Some(0) && u16_at(message, 30) == Some(0) && u16_at(message, 50) == Some(4)
}

/// Negotiates the version (1.3 section 6.3.1): the highest common version if both sides sent a bitmap, otherwise the
/// lower of the two versions. Returns `None` if the emulated switches do not support the result.
pub(super) fn negotiate(ours: Version, hello: &[u8]) -> Option<Version> {
    if ours == Version::V13
        && let Some(bitmap) = version_bitmap(hello)
    {
        return [Version::V13, Version::V10].into_iter().find(|version| bitmap & (1 << version.byte()) != 0);
    }

    match u8_at(hello, 0)?.min(ours.byte()) {
        1 => Some(Version::V10),
        4 => Some(Version::V13),
        _ => None,
    }
}

/// Returns the first word of the HELLO element OFPHET_VERSIONBITMAP, if there is one.
fn version_bitmap(hello: &[u8]) -> Option<u32> {
    let mut elements = hello.get(HEADER_BYTES..)?;
    loop {
        let length = usize::from(u16_at(elements, 2)?);
        if length < 4 || length > elements.len() {
            return None;
        }
        if u16_at(elements, 0)? == 1 && length >= 8 {
            return u32_at(elements, 4);
        }
        elements = elements.get(length.next_multiple_of(8)..)?;
    }
}

/// Appends a header without its length, which [`finish`] writes. Returns the message's offset.
pub(super) fn begin(out: &mut Vec<u8>, version: Version, kind: u8, transaction: u32) -> usize {
    let start = out.len();
    out.extend_from_slice(&[version.byte(), kind, 0, 0]);
    out.extend_from_slice(&transaction.to_be_bytes());
    start
}

/// Writes the length of the message that starts at `start`.
///
/// # Panics
///
/// Panics if the message is too long for the length field, which cannot happen because all messages here are built
/// from bounded parts.
pub(super) fn finish(out: &mut [u8], start: usize) {
    let length = u16::try_from(out.len() - start).expect("a message of the generator fits its length field");
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a complete message with this body.
pub(super) fn message(out: &mut Vec<u8>, version: Version, kind: u8, transaction: u32, body: &[u8]) {
    let start = begin(out, version, kind, transaction);
    out.extend_from_slice(body);
    finish(out, start);
}

/// Appends a HELLO. A 1.3 switch also announces 1.0, in a bitmap; 1.0 has no bitmap.
pub(super) fn hello(out: &mut Vec<u8>, newest: Version) {
    match newest {
        Version::V10 => message(out, newest, kind::HELLO, 1, &[]),
        Version::V13 => message(out, newest, kind::HELLO, 1, &[0, 1, 0, 8, 0, 0, 0, 0b1_0010]),
    }
}

/// Appends a FEATURES_REPLY. In 1.0 it lists the ports; 1.3 lists them in a multipart reply.
pub(super) fn features_reply(
    out: &mut Vec<u8>,
    version: Version,
    transaction: u32,
    datapath: u64,
    ports: u32,
    buffers: u32,
) {
    let start = begin(out, version, kind::FEATURES_REPLY, transaction);
    out.extend_from_slice(&datapath.to_be_bytes());
    out.extend_from_slice(&buffers.to_be_bytes());
    out.extend_from_slice(&[1, 0, 0, 0]); // one table, main connection

    match version {
        Version::V10 => {
            out.extend_from_slice(&0x87_u32.to_be_bytes()); // flow, table, port statistics; ARP match
            out.extend_from_slice(&0xfff_u32.to_be_bytes()); // all actions of 1.0
            (1..=ports).for_each(|port| port_description(out, version, datapath, port));
        }
        Version::V13 => {
            out.extend_from_slice(&0x7_u32.to_be_bytes()); // flow, table, port statistics
            out.extend_from_slice(&[0; 4]);
        }
    }

    finish(out, start);
}

fn port_description(out: &mut Vec<u8>, version: Version, datapath: u64, port: u32) {
    let [.., d2, d1, d0] = datapath.to_be_bytes();
    let [.., p1, p0] = port.to_be_bytes();
    let mut name = [0_u8; 16];
    name.iter_mut().zip(format!("port{port}").bytes()).for_each(|(to, from)| *to = from);
    match version {
        Version::V10 => out.extend_from_slice(&[p1, p0]),
        Version::V13 => out.extend_from_slice(&[0, 0, p1, p0, 0, 0, 0, 0]),
    }

    // 06: locally administered, and distinct from the addresses of hosts, which start with 02
    out.extend_from_slice(&[0x06, d2, d1, d0, p1, p0]);
    if version == Version::V13 {
        out.extend_from_slice(&[0, 0]);
    }

    out.extend_from_slice(&name);
    out.extend_from_slice(&[0; 8]); // configuration and state: up
    // current, advertised, supported, peer: 10 Gbit/s, full duplex, copper
    let fast = if version == Version::V10 { 0xc0_u32 } else { 0x840 };
    [fast, 0, fast, 0].iter().for_each(|features| out.extend_from_slice(&features.to_be_bytes()));

    if version == Version::V13 {
        [10_000_000_u32; 2].iter().for_each(|speed_kbit| out.extend_from_slice(&speed_kbit.to_be_bytes()));
    }
}

/// Returns whether a statistics request (1.0) or multipart request (1.3) asks for flows.
pub(super) fn asks_for_flows(request: &[u8]) -> bool {
    u16_at(request, 8) == Some(1)
}

/// Appends the answer to a statistics request (1.0) or multipart request (1.3), for a switch without flows whose
/// counters are all 0.
pub(super) fn statistics_reply(
    out: &mut Vec<u8>,
    version: Version,
    request: &[u8],
    datapath: u64,
    ports: u32,
) -> Option<()> {
    let (transaction, what) = (u32_at(request, 4)?, u16_at(request, 8)?);
    let (kind, more_after) = match version {
        Version::V10 => (kind::V10_STATS_REPLY, 60_000),
        Version::V13 => (kind::V13_MULTIPART_REPLY, 60_000),
    };

    let mut start = begin_part(out, version, kind, transaction, what);
    match (what, version) {
        (0, _) => {
            for (text, bytes) in [
                ("Beehive", 256),
                ("emulated switch", 256),
                (env!("CARGO_PKG_VERSION"), 256),
                ("none", 32),
                ("beehive bench openflow", 256),
            ] {
                let end = out.len() + bytes;
                out.extend_from_slice(text.as_bytes());
                out.resize(end, 0);
            }
        }
        (2, _) => out.extend_from_slice(&[0; 24]), // aggregate
        (8, Version::V13) => out.extend_from_slice(&[0; 40]), // group features
        (11, Version::V13) => out.extend_from_slice(&[0; 16]), // meter features
        (4, _) | (13, Version::V13) => {
            for port in 1..=ports {
                if out.len() - start > more_after {
                    out[start + 11] = 1; // more parts follow
                    finish(out, start);
                    start = begin_part(out, version, kind, transaction, what);
                }

                match (what, version) {
                    (13, _) => port_description(out, version, datapath, port),
                    (_, Version::V10) => {
                        out.extend_from_slice(&(port as u16).to_be_bytes());
                        out.extend_from_slice(&[0; 102]);
                    }
                    (_, Version::V13) => {
                        out.extend_from_slice(&port.to_be_bytes());
                        out.extend_from_slice(&[0; 108]);
                    }
                }
            }
        }
        _ => {} // flows, tables, queues, groups and meters: an empty list
    }

    finish(out, start);
    Some(())
}

fn begin_part(out: &mut Vec<u8>, version: Version, kind: u8, transaction: u32, what: u16) -> usize {
    let start = begin(out, version, kind, transaction);
    out.extend_from_slice(&what.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    if version == Version::V13 {
        out.extend_from_slice(&[0; 4]);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO_10: &[u8] = &[1, 0, 0, 8, 0, 0, 0, 1];
    const HELLO_15_PLAIN: &[u8] = &[6, 0, 0, 8, 0, 0, 0, 1];

    fn hello_with_bitmap(version: u8, bitmap: u32) -> Vec<u8> {
        let mut hello = vec![version, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8];
        hello.extend_from_slice(&bitmap.to_be_bytes());
        hello
    }

    #[test]
    fn versions_are_negotiated_as_the_specification_says() {
        let cases: &[(Version, Vec<u8>, Option<Version>)] = &[
            (Version::V13, HELLO_10.to_vec(), Some(Version::V10)),
            (Version::V13, HELLO_15_PLAIN.to_vec(), Some(Version::V13)),
            (Version::V10, HELLO_15_PLAIN.to_vec(), Some(Version::V10)),
            (Version::V13, vec![3, 0, 0, 8, 0, 0, 0, 1], None),
            (Version::V13, hello_with_bitmap(6, 0b0100_0010), Some(Version::V10)),
            (Version::V13, hello_with_bitmap(6, 0b0101_0010), Some(Version::V13)),
            (Version::V13, hello_with_bitmap(5, 0b0010_0000), None),
            (Version::V10, hello_with_bitmap(4, 0b0001_0010), Some(Version::V10)),
            (Version::V13, vec![4, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0], Some(Version::V13)),
        ];

        for (ours, hello, expected) in cases {
            assert_eq!(negotiate(*ours, hello), *expected, "{ours:?} {hello:02x?}");
        }
    }

    #[test]
    fn a_packet_out_is_read_to_its_first_output() {
        // 1.0: SET_VLAN_VID, then OUTPUT to FLOOD
        let v10 = [
            &[1, 13, 0, 36, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 16][..],
            &[0, 1, 0, 8, 0, 5, 0, 0, 0, 0, 0, 8, 0xff, 0xfb, 0, 0],
            b"tail",
        ]
        .concat();
        let packet = PacketOut::parse(Version::V10, &v10).unwrap();
        assert_eq!((packet.buffer, packet.port, packet.frame), (NO_BUFFER, Some(0xffff_fffb), &b"tail"[..]));

        // a truncated message is refused or has a shorter frame
        for length in 0..v10.len() {
            assert!(PacketOut::parse(Version::V10, &v10[..length]).is_none_or(|p| p.frame.len() < 4));
        }

        let mut spinning = v10.clone();
        spinning[19] = 0; // an action of length 0
        assert!(PacketOut::parse(Version::V10, &spinning).is_none());
    }

    #[test]
    fn table_miss_is_told_from_other_flows() {
        let mut flow = vec![0_u8; 80];
        flow[51] = 4;
        assert!(adds_table_miss(&flow));
        flow[31] = 1;
        assert!(!adds_table_miss(&flow), "priority 1");
        assert!(!adds_table_miss(&flow[..40]));
    }

    #[test]
    fn many_ports_come_in_several_parts() {
        let mut request = vec![4, 18, 0, 16, 0, 0, 0, 9, 0, 13, 0, 0, 0, 0, 0, 0];
        let mut out = Vec::new();
        statistics_reply(&mut out, Version::V13, &request, 7, 1_000).unwrap();
        let first = usize::from(u16_at(&out, 2).unwrap());
        assert_eq!((u16_at(&out, 10), u16_at(&out, first + 10)), (Some(1), Some(0)));
        let second = usize::from(u16_at(&out, first + 2).unwrap());
        assert_eq!((first - 16 + second - 16, first + second), (1_000 * 64, out.len()));
        request.truncate(9);

        assert!(statistics_reply(&mut out, Version::V13, &request, 7, 1).is_none());
    }
}
