//! Reads the packets of a capture file (pcap or pcapng).

use std::fmt;
use std::io::{self, Read};

/// Maximum length of a packet or block, in bytes. No interface captures longer packets.
const PACKET_LENGTH_MAX: usize = 1 << 20;

/// The reason why the rest of a capture cannot be read.
#[derive(Debug)]
pub(super) enum CaptureError {
    /// The input cannot be read.
    Io(io::Error),
    /// The input is not a capture, or a length in it is wrong. The text tells the two cases apart.
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

/// Iterates over the packets of a capture.
///
/// Both formats are parsed here rather than by a crate, because `pcap-parser` drops I/O errors and refuses a
/// pipe whose first read is shorter than the file header.
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

/// Fills `into`. Returns `false` if the input ends before `into` is
/// full, as it does in a capture whose last record is incomplete.
fn fill(input: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

const NOT_A_CAPTURE: CaptureError = CaptureError::Format("not a packet capture (expected pcap or pcapng)");
const DAMAGED: CaptureError = CaptureError::Format("the packet capture is damaged");

impl<R: Read> Packets<R> {
    /// Reads the file header and detects the format.
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

    /// Returns the next packet with its `LINKTYPE_*`, or `None` at the end.
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
                    // interface description block
                    1 => links.push(half(&self.packet, 0, *swapped).ok_or(DAMAGED)?.into()),
                    // enhanced packet block
                    6 => {
                        let interface = word(&self.packet, 0, *swapped).ok_or(DAMAGED)? as usize;
                        let length = word(&self.packet, 12, *swapped).ok_or(DAMAGED)? as usize;
                        let link = *links.get(interface).ok_or(DAMAGED)?;
                        return match self.packet.get(20..20 + length) {
                            Some(packet) => Ok(Some((link, packet))),
                            None => Err(DAMAGED),
                        };
                    }
                    // simple packet block, which always belongs to the first interface
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

/// Reads the rest of a section header block, after the block type. Returns whether the section is big-endian.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
