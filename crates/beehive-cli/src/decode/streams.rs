//! Follows the TCP connections in a capture and extracts each direction's OpenFlow messages in order.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use beehive_of::FrameBuffer;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};

/// Maximum number of connection directions to follow. The first direction beyond the limit is reported.
const STREAMS_MAX: usize = 4_096;

/// Maximum number of bytes of one direction buffered until the data before them arrives.
const EARLY_BYTES_MAX: usize = 1 << 20;

/// Maximum number of segments of one direction buffered until the data before them arrives.
const EARLY_SEGMENTS_MAX: usize = 4_096;

/// Link types that can carry TCP (`LINKTYPE_*`).
mod link {
    pub(super) const NULL: u32 = 0;
    pub(super) const ETHERNET: u32 = 1;
    pub(super) const RAW: u32 = 101;
    pub(super) const LINUX_SLL: u32 = 113;
    pub(super) const IPV4: u32 = 228;
    pub(super) const IPV6: u32 = 229;
    pub(super) const LINUX_SLL2: u32 = 276;
}

/// One TCP segment of one direction of a connection.
#[derive(Clone, Copy)]
pub(super) struct Segment<'p> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Sequence number of the first byte of `data`.
    sequence: u32,
    /// Whether the segment opens the connection (SYN).
    starts: bool,
    data: &'p [u8],
}

/// Returns the TCP segment in a captured packet of this `LINKTYPE_*`, or `None` if the packet is a fragment or
/// contains no TCP segment.
pub(super) fn segment(kind: u32, packet: &[u8]) -> Option<Segment<'_>> {
    let ether_type = |at: usize| Some(EtherType(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?)));
    // parse leniently: the snapshot length of the capture may cut off
    // a packet, and its IP length may be 0 (segmentation offload)
    let sliced = match kind {
        link::ETHERNET => LaxSlicedPacket::from_ethernet(packet).ok()?,
        link::LINUX_SLL => LaxSlicedPacket::from_ether_type(ether_type(14)?, packet.get(16..)?),
        link::LINUX_SLL2 => LaxSlicedPacket::from_ether_type(ether_type(0)?, packet.get(20..)?),
        link::NULL => LaxSlicedPacket::from_ip(packet.get(4..)?).ok()?,
        link::RAW | link::IPV4 | link::IPV6 => LaxSlicedPacket::from_ip(packet).ok()?,
        _ => return None,
    };

    let (source, destination): (IpAddr, IpAddr) = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Arp(_) => return None,
    };

    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };

    // SYN occupies one sequence number before the data
    let sequence = tcp.sequence_number().wrapping_add(u32::from(tcp.syn()));
    Some(Segment {
        from: SocketAddr::new(source, tcp.source_port()),
        to: SocketAddr::new(destination, tcp.destination_port()),
        sequence,
        starts: tcp.syn(),
        data: tcp.payload(),
    })
}

/// The reassembled data of one direction of a connection.
#[derive(Default)]
struct Stream {
    /// Sequence number of the next byte; `None` before the first segment.
    next: Option<u32>,
    /// Segments that arrived before the data that precedes them, by sequence number.
    early: BTreeMap<u32, Vec<u8>>,
    /// Sum of the lengths in `early`.
    early_bytes: usize,
    frames: FrameBuffer,
    /// Whether an error has been reported. If so, the direction is ignored from then on.
    failed: bool,
}

/// A message on a connection, or the reason why a direction cannot be followed any further.
pub(super) enum Event<'e> {
    /// A complete message with its source and destination.
    Message(SocketAddr, SocketAddr, &'e [u8]),
    /// An error with the direction's source and destination. No more events follow for that direction.
    Failed(SocketAddr, SocketAddr, String),
}

/// The connections of a capture, followed in both directions.
#[derive(Default)]
pub(super) struct Streams {
    streams: HashMap<(SocketAddr, SocketAddr), Stream>,
    /// Whether an error about a connection beyond [`STREAMS_MAX`] has been reported.
    is_full: bool,
}

impl Streams {
    /// Adds a segment and calls `then` for each message it completes.
    pub(super) fn take<E>(
        &mut self,
        segment: &Segment<'_>,
        mut then: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let key = (segment.from, segment.to);
        if segment.data.is_empty() && !segment.starts {
            return Ok(());
        }

        if !self.streams.contains_key(&key) && self.streams.len() >= STREAMS_MAX {
            if std::mem::replace(&mut self.is_full, true) {
                return Ok(());
            }
            let error = format!(
                "the capture has more than {STREAMS_MAX} connections; this one and later ones are skipped"
            );
            return then(Event::Failed(segment.from, segment.to, error));
        }

        let stream = self.streams.entry(key).or_default();
        if segment.starts {
            *stream = Stream { next: Some(segment.sequence), ..Stream::default() };
        }
        if stream.failed {
            return Ok(());
        }

        let error = stream.add(segment).err();
        loop {
            match stream.frames.next_frame() {
                Ok(Some(frame)) => then(Event::Message(segment.from, segment.to, frame.bytes()))?,
                Ok(None) => break,
                Err(error) => {
                    *stream = Stream::failed();
                    return then(Event::Failed(segment.from, segment.to, error.to_string()));
                }
            }
        }

        match error {
            Some(error) => {
                *stream = Stream::failed();
                then(Event::Failed(segment.from, segment.to, error.to_owned()))
            }
            None => Ok(()),
        }
    }
}

impl Stream {
    /// Returns the state of a direction to be ignored from now on. It has no buffers.
    fn failed() -> Stream {
        Stream { failed: true, ..Stream::default() }
    }

    /// Appends the segment, or buffers it until the data before it arrives.
    fn add(&mut self, segment: &Segment<'_>) -> Result<(), &'static str> {
        // a capture may begin in the middle of a connection, so assumes that its first segment starts a message
        let next = *self.next.get_or_insert(segment.sequence);
        let ahead = segment.sequence.wrapping_sub(next) as i32;
        if ahead > 0 {
            // a retransmission is buffered once, in its longest form
            let known = self.early.get(&segment.sequence).map_or(0, Vec::len);
            if segment.data.len() <= known {
                return Ok(());
            }
            self.early_bytes += segment.data.len() - known;
            self.early.insert(segment.sequence, segment.data.to_vec());

            let is_bounded = self.early_bytes <= EARLY_BYTES_MAX && self.early.len() <= EARLY_SEGMENTS_MAX;
            return if is_bounded { Ok(()) } else { Err("packets are missing from the capture") };
        }

        self.append(segment.sequence, segment.data);
        while let Some((sequence, data)) = self.ready() {
            self.append(sequence, &data);
        }
        Ok(())
    }

    /// Removes and returns a buffered segment that can now be appended.
    fn ready(&mut self) -> Option<(u32, Vec<u8>)> {
        let next = self.next?;
        let sequence = self.early.keys().copied().find(|sequence| sequence.wrapping_sub(next) as i32 <= 0)?;
        let data = self.early.remove(&sequence)?;
        self.early_bytes -= data.len();
        Some((sequence, data))
    }

    /// Appends the part of `data` that has not been received before.
    fn append(&mut self, sequence: u32, data: &[u8]) {
        let Some(next) = self.next else { return };
        let known = next.wrapping_sub(sequence) as usize;
        if let Some(new) = data.get(known..).filter(|new| !new.is_empty()) {
            self.frames.read_target().extend_from_slice(new);
            self.next = Some(next.wrapping_add(new.len() as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn part(sequence: u32, starts: bool, data: &[u8]) -> Segment<'_> {
        let address = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        Segment { from: address(40_000), to: address(6653), sequence, starts, data }
    }

    fn followed(parts: &[Segment<'_>]) -> (Vec<Vec<u8>>, Vec<String>) {
        let (mut streams, mut messages, mut errors) = (Streams::default(), Vec::new(), Vec::new());
        for part in parts {
            let taken: Result<(), ()> = streams.take(part, |event| {
                match event {
                    Event::Message(_, _, bytes) => messages.push(bytes.to_vec()),
                    Event::Failed(_, _, error) => errors.push(error),
                }
                Ok(())
            });
            taken.unwrap();
        }

        (messages, errors)
    }

    const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 7];

    #[test]
    fn parts_out_of_order_twice_and_overlapping_are_put_together_once() {
        let first = u32::MAX - 3;
        let parts = [
            part(first, true, &[]),
            part(first.wrapping_add(4), false, &HELLO[4..]),
            part(first.wrapping_add(8), false, &HELLO),
            part(first, false, &HELLO[..4]),
            part(first, false, &HELLO[..6]),
            part(first.wrapping_add(8), false, &HELLO),
            part(first.wrapping_add(16), false, &HELLO[..3]),
        ];

        assert_eq!(followed(&parts), (vec![HELLO.to_vec(), HELLO.to_vec()], vec![]));
    }

    #[test]
    fn what_is_no_openflow_or_has_holes_is_said_once() {
        let (messages, errors) =
            followed(&[part(1, true, b"GET / HTTP/1.1\r\n"), part(17, false, b"again and again")]);
        assert!(messages.is_empty());
        assert!(errors.is_empty(), "a long message is waited for: {errors:?}");
        let (messages, errors) =
            followed(&[part(1, true, &[4, 0, 0, 7, 0, 0, 0, 0]), part(9, false, &HELLO)]);
        assert_eq!((messages.len(), errors.len()), (0, 1));
        let big = vec![0; EARLY_BYTES_MAX / 2 + 1];
        let (_, errors) =
            followed(&[part(1, true, &[]), part(100, false, &big), part(90_000_000, false, &big)]);
        assert_eq!(errors, ["packets are missing from the capture"]);

        let early: Vec<_> =
            (0..=EARLY_SEGMENTS_MAX as u32).map(|at| part(100 + 2 * at, false, b"x")).collect();
        assert_eq!(followed(&[&[part(1, true, &[])], &early[..]].concat()).1, errors);
    }

    #[test]
    fn an_early_segment_that_is_sent_again_counts_once() {
        let big = vec![0; EARLY_BYTES_MAX / 2 + 1];
        let again =
            [part(1, true, &[]), part(100, false, &big), part(100, false, &big), part(100, false, &big[1..])];
        assert_eq!(followed(&again).1, [""; 0]);

        let longer = [
            part(1, true, &[]),
            part(5, false, &HELLO[4..6]),
            part(5, false, &HELLO[4..]),
            part(1, false, &HELLO[..4]),
        ];

        assert_eq!(followed(&longer), (vec![HELLO.to_vec()], vec![]));
    }

    #[test]
    fn connections_beyond_the_limit_are_reported_once() {
        let mut streams = Streams::default();
        let mut errors = Vec::new();
        for port in 0..=STREAMS_MAX as u16 + 5 {
            let mut segment = part(1, false, &HELLO);
            segment.from.set_port(port);
            let taken: Result<(), ()> = streams.take(&segment, |event| {
                if let Event::Failed(_, _, error) = event {
                    errors.push(error)
                }
                Ok(())
            });
            taken.unwrap();
        }

        assert_eq!(
            errors,
            ["the capture has more than 4096 connections; this one and later ones are skipped"]
        );
    }

    /// Builds an Ethernet frame with two VLAN tags, an IPv4 header with this total length, a TCP header from port
    /// 6653 to port 40000, and `data`.
    fn tagged(total_length: u16, data: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 12];
        packet.extend([0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0, 0x45, 0]);
        packet.extend(total_length.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([6653u16.to_be_bytes(), 40_000u16.to_be_bytes()].concat());
        packet.extend([0, 0, 0, 7, 0, 0, 0, 0, 0x50, 0x18, 0, 0, 0, 0, 0, 0]);
        packet.extend(data);
        packet
    }

    #[test]
    fn segments_are_found_behind_every_kind_of_link() {
        let packet = tagged(48, &HELLO);
        let ip = &packet[22..];
        let mut sll = vec![0; 14];
        sll.extend([8, 0]);
        let mut sll2 = vec![8, 0];
        sll2.extend([0; 18]);

        for (kind, packet) in [
            (link::ETHERNET, packet.clone()),
            (link::RAW, ip.to_vec()),
            (link::IPV4, ip.to_vec()),
            (link::NULL, [&[2, 0, 0, 0], ip].concat()),
            (link::LINUX_SLL, [&sll, ip].concat()),
            (link::LINUX_SLL2, [&sll2, ip].concat()),
        ] {
            let found = segment(kind, &packet).expect("a segment");
            assert_eq!((found.from.to_string(), found.to.port()), ("10.0.0.1:6653".into(), 40_000), "{kind}");
            assert_eq!((found.sequence, found.starts, found.data), (7, false, &HELLO[..]), "{kind}");
        }

        assert!(segment(9_999, &packet).is_none());
    }

    #[test]
    fn a_segment_ends_where_its_ip_packet_ends() {
        let mut padded = tagged(48, &HELLO);
        padded.extend([0xee; 6]);
        assert_eq!(segment(link::ETHERNET, &padded).map(|found| found.data), Some(&HELLO[..]));

        // segmentation offload: the IP length is 0, so the data extends to the end of the packet
        assert_eq!(segment(link::ETHERNET, &tagged(0, &HELLO)).map(|found| found.data), Some(&HELLO[..]));

        let mut fragment = tagged(48, &HELLO);
        fragment[28] = 0x20;
        assert!(segment(link::ETHERNET, &fragment).is_none(), "fragments are not put together");
    }

    #[test]
    fn segments_behind_extension_headers_of_ipv6_are_found() {
        let mut packet = vec![0; 12];
        packet.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 36, 0, 64]);
        packet.extend([[0xfd; 16], [0xfe; 16]].concat());
        // hop-by-hop options: padding
        packet.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        packet.extend_from_slice(&tagged(48, &HELLO)[42..]);
        let found = segment(link::ETHERNET, &packet).expect("a segment");
        assert_eq!((found.from.port(), found.data), (6653, &HELLO[..]));
    }

    #[test]
    fn no_truncation_and_no_changed_byte_panics() {
        let packet = tagged(48, &HELLO);
        for at in 0..packet.len() {
            for kind in [0, 1, 101, 113, 228, 229, 276] {
                let shorter = segment(kind, &packet[..at]);
                assert!(shorter.is_none_or(|found| found.data.len() < HELLO.len()));
                for byte in 0..=255 {
                    let mut changed = packet.clone();
                    changed[at] = byte;
                    assert!(segment(kind, &changed).is_none_or(|found| found.data.len() <= packet.len()));
                }
            }
        }
    }
}
