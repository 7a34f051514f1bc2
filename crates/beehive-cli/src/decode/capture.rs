//! OpenFlow in a capture of packets (pcap or pcapng): the messages of each direction of each TCP connection, in order.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use beehive_of::FrameBuffer;

/// Longest packet or block that is read, in bytes: more than any interface captures.
const PACKET_LENGTH_MAX: usize = 1 << 20;

/// Most connections that are followed at a time; those beyond are told and left out.
const STREAMS_MAX: usize = 4_096;

/// Most bytes of one direction that wait for a packet before them.
const EARLY_BYTES_MAX: usize = 1 << 20;

/// Kinds of packets (`LINKTYPE_*`).
mod link {
    pub(super) const NULL: u32 = 0;
    pub(super) const ETHERNET: u32 = 1;
    pub(super) const RAW: u32 = 101;
    pub(super) const LINUX_SLL: u32 = 113;
    pub(super) const IPV4: u32 = 228;
    pub(super) const IPV6: u32 = 229;
    pub(super) const LINUX_SLL2: u32 = 276;
}

/// Why a capture cannot be read further.
#[derive(Debug)]
pub(super) enum CaptureError {
    /// Reading failed.
    Io(io::Error),
    /// It is no capture of a format that is known.
    Format(&'static str),
}

impl From<io::Error> for CaptureError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(formatter, "{error}"),
            Self::Format(what) => formatter.write_str(what),
        }
    }
}

/// The packets of a capture.
pub(super) struct Packets<R> {
    input: R,
    format: Format,
    packet: Vec<u8>,
}

enum Format {
    Pcap { swapped: bool, link: u32 },
    Pcapng { swapped: bool, links: Vec<u32> },
}

fn word(bytes: &[u8], at: usize, swapped: bool) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(if swapped { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

fn half(bytes: &[u8], at: usize, swapped: bool) -> Option<u16> {
    let bytes: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(if swapped { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
}

/// Fills `into`; `false` at the end, and also where the capture is cut off.
fn fill(input: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

const NOT_A_CAPTURE: CaptureError = CaptureError::Format("this is no capture of packets (pcap or pcapng)");
const DAMAGED: CaptureError = CaptureError::Format("the capture is damaged");

impl<R: Read> Packets<R> {
    /// Reads the head of a capture.
    pub(super) fn new(mut input: R) -> Result<Self, CaptureError> {
        let mut magic = [0; 4];
        if !fill(&mut input, &mut magic)? {
            return Err(NOT_A_CAPTURE);
        }
        let format = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => Some(false),
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(true),
            [0x0a, 0x0d, 0x0d, 0x0a] => None,
            _ => return Err(NOT_A_CAPTURE),
        };
        let format = match format {
            Some(swapped) => {
                let mut head = [0; 20];
                if !fill(&mut input, &mut head)? {
                    return Err(NOT_A_CAPTURE);
                }
                Format::Pcap { swapped, link: word(&head, 16, swapped).ok_or(NOT_A_CAPTURE)? & 0x0fff_ffff }
            }
            None => Format::Pcapng { swapped: section(&mut input)?, links: Vec::new() },
        };
        Ok(Self { input, format, packet: Vec::new() })
    }

    /// The next packet and its kind; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, &[u8])>, CaptureError> {
        match &mut self.format {
            Format::Pcap { swapped, link } => {
                let mut head = [0; 16];
                if !fill(&mut self.input, &mut head)? {
                    return Ok(None);
                }
                let length = word(&head, 8, *swapped).ok_or(DAMAGED)? as usize;
                if length > PACKET_LENGTH_MAX {
                    return Err(DAMAGED);
                }
                self.packet.resize(length, 0);
                if !fill(&mut self.input, &mut self.packet)? {
                    return Ok(None);
                }
                Ok(Some((*link, self.packet.as_slice())))
            }
            Format::Pcapng { swapped, links } => loop {
                let mut head = [0; 4];
                if !fill(&mut self.input, &mut head)? {
                    return Ok(None);
                }
                if head == [0x0a, 0x0d, 0x0d, 0x0a] {
                    *swapped = section(&mut self.input)?;
                    links.clear();
                    continue;
                }
                let kind = word(&head, 0, *swapped).ok_or(DAMAGED)?;
                if !fill(&mut self.input, &mut head)? {
                    return Ok(None);
                }
                let length = word(&head, 0, *swapped).ok_or(DAMAGED)? as usize;
                let left = length.checked_sub(8).filter(|left| *left <= PACKET_LENGTH_MAX).ok_or(DAMAGED)?;
                self.packet.resize(left, 0);
                if !fill(&mut self.input, &mut self.packet)? {
                    return Ok(None);
                }
                match kind {
                    // Interface description.
                    1 => links.push(half(&self.packet, 0, *swapped).ok_or(DAMAGED)?.into()),
                    // Enhanced packet.
                    6 => {
                        let interface = word(&self.packet, 0, *swapped).ok_or(DAMAGED)? as usize;
                        let length = word(&self.packet, 12, *swapped).ok_or(DAMAGED)? as usize;
                        let link = *links.get(interface).ok_or(DAMAGED)?;
                        return match self.packet.get(20..20 + length) {
                            Some(packet) => Ok(Some((link, packet))),
                            None => Err(DAMAGED),
                        };
                    }
                    // Simple packet.
                    3 => {
                        let length = word(&self.packet, 0, *swapped).ok_or(DAMAGED)? as usize;
                        let link = *links.first().ok_or(DAMAGED)?;
                        let end = self.packet.len().saturating_sub(4).min(4 + length);
                        return Ok(Some((link, self.packet.get(4..end).unwrap_or(&[]))));
                    }
                    _ => {}
                }
            },
        }
    }
}

/// Reads the rest of the block that starts a section; returns its order of bytes.
fn section(input: &mut impl Read) -> Result<bool, CaptureError> {
    let mut head = [0; 8];
    if !fill(input, &mut head)? {
        return Err(NOT_A_CAPTURE);
    }
    let swapped = match head.get(4..) {
        Some([0x4d, 0x3c, 0x2b, 0x1a]) => false,
        Some([0x1a, 0x2b, 0x3c, 0x4d]) => true,
        _ => return Err(NOT_A_CAPTURE),
    };
    let length = word(&head, 0, swapped).ok_or(NOT_A_CAPTURE)? as usize;
    let left = length.checked_sub(12).filter(|left| *left <= PACKET_LENGTH_MAX).ok_or(DAMAGED)?;
    let mut rest = vec![0; left];
    if fill(input, &mut rest)? { Ok(swapped) } else { Err(DAMAGED) }
}

/// Part of a TCP connection in one direction.
pub(super) struct Segment<'p> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    sequence: u32,
    starts: bool,
    data: &'p [u8],
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The TCP segment that a packet is, if it is one.
pub(super) fn segment(kind: u32, packet: &[u8]) -> Option<Segment<'_>> {
    let (mut ethernet_type, mut rest) = match kind {
        link::ETHERNET => (Some(be16(packet, 12)?), packet.get(14..)?),
        link::LINUX_SLL => (Some(be16(packet, 14)?), packet.get(16..)?),
        link::LINUX_SLL2 => (Some(be16(packet, 0)?), packet.get(20..)?),
        link::NULL => (None, packet.get(4..)?),
        link::RAW | link::IPV4 | link::IPV6 => (None, packet),
        _ => return None,
    };
    while matches!(ethernet_type, Some(0x8100 | 0x88a8)) {
        (ethernet_type, rest) = (Some(be16(rest, 2)?), rest.get(4..)?);
    }
    let version = rest.first()? >> 4;
    let (source, destination, tcp): (IpAddr, IpAddr, &[u8]) = match (ethernet_type, version) {
        (None | Some(0x0800), 4) => {
            let header = usize::from(rest.first()? & 0x0f) * 4;
            let length = usize::from(be16(rest, 2)?);
            let fragmented = be16(rest, 6)? & 0x3fff != 0;
            if *rest.get(9)? != 6 || fragmented {
                return None;
            }
            let address = |at: usize| -> Option<IpAddr> {
                let octets: [u8; 4] = rest.get(at..at + 4)?.try_into().ok()?;
                Some(Ipv4Addr::from(octets).into())
            };
            // Length 0 is a packet that the network card was to split.
            let end = if length == 0 { rest.len() } else { length.min(rest.len()) };
            (address(12)?, address(16)?, rest.get(header..end)?)
        }
        (None | Some(0x86dd), 6) => {
            let length = usize::from(be16(rest, 4)?);
            if *rest.get(6)? != 6 {
                return None;
            }
            let address = |at: usize| -> Option<IpAddr> {
                let octets: [u8; 16] = rest.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from(octets).into())
            };
            let end = if length == 0 { rest.len() } else { (40 + length).min(rest.len()) };
            (address(8)?, address(24)?, rest.get(40..end)?)
        }
        _ => return None,
    };
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let sequence = u32::from_be_bytes(tcp.get(4..8)?.try_into().ok()?);
    let starts = tcp.get(13)? & 2 != 0;
    Some(Segment {
        from: SocketAddr::new(source, be16(tcp, 0)?),
        to: SocketAddr::new(destination, be16(tcp, 2)?),
        sequence: if starts { sequence.wrapping_add(1) } else { sequence },
        starts,
        data: tcp.get(header..)?,
    })
}

/// One direction of a connection, put in order.
#[derive(Default)]
struct Stream {
    /// The number of the byte that comes next.
    next: Option<u32>,
    early: BTreeMap<u32, Vec<u8>>,
    buffered_bytes: usize,
    frames: FrameBuffer,
    failed: bool,
}

/// What a capture says: a message, or that a direction cannot be followed further.
pub(super) enum Event<'e> {
    /// A message.
    Message(SocketAddr, SocketAddr, &'e [u8]),
    /// What is wrong.
    Failed(SocketAddr, SocketAddr, String),
}

/// The connections of a capture.
#[derive(Default)]
pub(super) struct Streams {
    streams: HashMap<(SocketAddr, SocketAddr), Stream>,
}

impl Streams {
    /// Takes a segment, and hands out the messages that are complete with it.
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
            let error = format!("more than {STREAMS_MAX} connections: this one is left out");
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
                    stream.failed = true;
                    return then(Event::Failed(segment.from, segment.to, error.to_string()));
                }
            }
        }
        match error {
            Some(error) => {
                stream.failed = true;
                then(Event::Failed(segment.from, segment.to, error.to_owned()))
            }
            None => Ok(()),
        }
    }
}

impl Stream {
    fn add(&mut self, segment: &Segment<'_>) -> Result<(), &'static str> {
        // A capture may begin in the middle: what is seen first is held to start a message.
        let next = *self.next.get_or_insert(segment.sequence);
        let ahead = segment.sequence.wrapping_sub(next) as i32;
        if ahead > 0 {
            self.buffered_bytes += segment.data.len();
            if self.buffered_bytes > EARLY_BYTES_MAX {
                return Err("packets are missing in the capture");
            }
            self.early.insert(segment.sequence, segment.data.to_vec());
            return Ok(());
        }
        self.append(segment.sequence, segment.data);
        while let Some((sequence, data)) = self.ready() {
            self.append(sequence, &data);
        }
        Ok(())
    }

    /// The next of those that wait and need not any more.
    fn ready(&mut self) -> Option<(u32, Vec<u8>)> {
        let next = self.next?;
        let sequence = self.early.keys().copied().find(|sequence| sequence.wrapping_sub(next) as i32 <= 0)?;
        let data = self.early.remove(&sequence)?;
        self.buffered_bytes -= data.len();
        Some((sequence, data))
    }

    /// Appends what of `data` is new.
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
        assert_eq!(errors, ["packets are missing in the capture"]);
    }

    #[test]
    fn damaged_captures_are_refused_or_end() {
        let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1];
        capture.extend([0; 16]);
        capture.extend([1, 0, 0, 0]);
        assert!(Packets::new(&capture[..]).unwrap().next().unwrap().is_none());
        capture.extend([0; 8]);
        capture.extend([0xff; 8]);
        assert!(Packets::new(&capture[..]).unwrap().next().is_err());
        for length in 0..24 {
            assert!(Packets::new(&capture[..length]).is_err());
        }
        assert!(Packets::new(&b"no capture at all"[..]).is_err());
        for length in 0..60 {
            assert!(
                segment(link::ETHERNET, &vec![0x45; length]).is_none_or(|part| part.data.len() <= length)
            );
        }
    }
}
