//! Frames: the parts of messages as they are sent, and the messages that are made of them again.
//!
//! ```text
//! kind: u8 | id: u64 | length of the message: u32 | a part of the message
//! ```
//!
//! The header has the format of the codec with fixed integers. A lane carries one message after the other, so the next frame
//! is always the next part of the message that has begun.

use crate::limits::wire as limits;
use bytes::{Buf, BufMut, Bytes};

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A packet. It has no id.
    Packet = 0,
    /// A call. Its answer has the same id.
    Call = 1,
    Answer = 2,
    /// The answer to a call that is refused, with the reason.
    Refused = 3,
    /// The caller no longer waits for the call with this id. The message is the number of the call's lane.
    Forget = 4,
    /// A further part of a message.
    Part = 5,
    /// A message of the handshake.
    Hello = 6,
}

impl Kind {
    fn from_number(number: u8) -> Option<Kind> {
        const KINDS: [Kind; 7] =
            [Kind::Packet, Kind::Call, Kind::Answer, Kind::Refused, Kind::Forget, Kind::Part, Kind::Hello];
        KINDS.get(usize::from(number)).copied()
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) id: u64,
    /// The length of the whole message.
    pub(super) length: u32,
    pub(super) part: Bytes,
}

impl Frame {
    pub(super) const HEADER_BYTES: usize = 13;

    pub(super) fn write(&self, to: &mut impl BufMut) {
        to.put_u8(self.kind as u8);
        to.put_u64_le(self.id);
        to.put_u32_le(self.length);
        to.put_slice(&self.part)
    }

    /// Reads a frame that consists of all the bytes. Takes no copy if the bytes allow it.
    pub(super) fn read(from: &mut impl Buf) -> Result<Frame, String> {
        if from.remaining() < Frame::HEADER_BYTES {
            return Err(format!("a frame of {} bytes is too short", from.remaining()));
        }
        let number = from.get_u8();
        let kind = Kind::from_number(number).ok_or_else(|| format!("no frame has the kind {number}"))?;
        let (id, length) = (from.get_u64_le(), from.get_u32_le());
        Ok(Frame { kind, id, length, part: from.copy_to_bytes(from.remaining()) })
    }
}

/// A whole message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) id: u64,
    pub(super) bytes: Vec<u8>,
}

/// Makes messages of the frames of one lane. At most one message is incomplete, and it takes only memory for the parts that
/// have arrived.
#[derive(Debug)]
pub(super) struct Assembler {
    message_bytes_max: usize,
    begun: Option<(Message, usize)>,
}

impl Assembler {
    pub(super) fn new(message_bytes_max: usize) -> Assembler {
        Assembler { message_bytes_max, begun: None }
    }

    /// Takes the next frame. Returns the message that it completes.
    ///
    /// # Errors
    ///
    /// Returns an error if the frame cannot follow the previous ones. The connection must then be closed.
    pub(super) fn take(&mut self, frame: Frame) -> Result<Option<Message>, String> {
        let Frame { kind, id, length, part } = frame;
        let (mut message, length) = match (kind, self.begun.take()) {
            (Kind::Part, Some(begun)) => begun,
            (Kind::Part, None) => return Err("a further part of no message".into()),
            (_, Some(_)) => return Err("a message begins before the previous one is complete".into()),
            (_, None) => {
                let length = length as usize;
                if length > self.message_bytes_max {
                    return Err(format!(
                        "a message of {length} bytes: this lane carries at most {}",
                        self.message_bytes_max
                    ));
                }
                (Message { kind, id, bytes: Vec::new() }, length)
            }
        };

        let missing = length - message.bytes.len();
        if part.len() > missing {
            return Err(format!("a part of {} bytes, and {missing} are missing", part.len()));
        }
        if part.is_empty() && missing > 0 {
            return Err("an empty part".into());
        }
        message.bytes.reserve_exact(part.len().max(missing.min(message.bytes.len())));
        message.bytes.extend_from_slice(&part);
        if message.bytes.len() == length {
            return Ok(Some(message));
        }
        self.begun = Some((message, length));
        Ok(None)
    }
}

/// A message that is sent part by part.
#[derive(Debug)]
pub(super) struct Cut {
    kind: Kind,
    id: u64,
    length: u32,
    rest: Bytes,
    is_begun: bool,
}

impl Cut {
    pub(super) fn new(kind: Kind, id: u64, bytes: Vec<u8>) -> Cut {
        debug_assert!(bytes.len() <= limits::MESSAGE_BYTES_MAX);
        Cut { kind, id, length: bytes.len() as u32, rest: Bytes::from(bytes), is_begun: false }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Cuts off the next frame. Also returns whether it is the last one.
    pub(super) fn next(&mut self) -> (Frame, bool) {
        let kind = if self.is_begun { Kind::Part } else { self.kind };
        self.is_begun = true;
        let part = self.rest.split_to(self.rest.len().min(limits::PART_BYTES));
        (Frame { kind, id: self.id, length: self.length, part }, self.rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: Kind, length: u32, part: &'static [u8]) -> Frame {
        Frame { kind, id: 7, length, part: Bytes::from_static(part) }
    }

    #[test]
    fn a_message_is_cut_and_assembled() {
        for length in [0, 1, limits::PART_BYTES, limits::PART_BYTES + 1, 3 * limits::PART_BYTES] {
            let bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let mut cut = Cut::new(Kind::Call, 7, bytes.clone());
            let mut assembler = Assembler::new(limits::MESSAGE_BYTES_MAX);
            let message = loop {
                let (frame, is_last) = cut.next();
                let mut written = Vec::new();
                frame.write(&mut written);
                assert!(written.len() <= limits::FRAME_BYTES_MAX);
                assert_eq!(Frame::read(&mut &written[..]).as_ref(), Ok(&frame));
                let message = assembler.take(frame).unwrap();
                assert_eq!(message.is_some(), is_last, "of {length} bytes");
                if let Some(message) = message {
                    break message;
                }
            };
            assert_eq!(message, Message { kind: Kind::Call, id: 7, bytes });
        }
    }

    #[test]
    fn frames_that_cannot_follow_are_refused() {
        let refused = |frames: &[Frame]| {
            let mut assembler = Assembler::new(8);
            let (last, before) = frames.split_last().unwrap();
            for frame in before {
                assert_eq!(assembler.take(frame.clone()), Ok(None))
            }
            assembler.take(last.clone()).unwrap_err()
        };
        assert_eq!(
            refused(&[frame(Kind::Packet, 9, b"")]),
            "a message of 9 bytes: this lane carries at most 8"
        );
        assert_eq!(refused(&[frame(Kind::Packet, 1, b"")]), "an empty part");
        assert_eq!(refused(&[frame(Kind::Packet, 1, b"ab")]), "a part of 2 bytes, and 1 are missing");
        assert_eq!(refused(&[frame(Kind::Part, 1, b"a")]), "a further part of no message");
        let begun = frame(Kind::Packet, 3, b"a");
        assert_eq!(
            refused(&[begun.clone(), frame(Kind::Call, 3, b"abc")]),
            "a message begins before the previous one is complete"
        );
        assert_eq!(refused(&[begun, frame(Kind::Part, 3, b"abc")]), "a part of 3 bytes, and 2 are missing");
    }

    #[test]
    fn a_long_message_takes_memory_only_as_it_arrives() {
        let mut assembler = Assembler::new(limits::MESSAGE_BYTES_MAX);
        assert_eq!(assembler.take(frame(Kind::Packet, limits::MESSAGE_BYTES_MAX as u32, b"abcd")), Ok(None));
        let (message, _) = assembler.begun.unwrap();
        assert!(message.bytes.capacity() < 64, "{} bytes", message.bytes.capacity())
    }

    /// A number from a sequence that is the same in each run.
    fn random(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize
    }

    #[test]
    fn mutated_frames_make_no_longer_message_than_was_sent() {
        let count = if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 } else { 20_000 };
        let (mut state, mut complete, mut refused) = (1, 0, 0);
        let mut assembler = Assembler::new(4_096);
        let mut sent = 0;
        for _ in 0..count {
            let kind = [Kind::Packet, Kind::Call, Kind::Answer, Kind::Part][random(&mut state) % 4];
            let part = vec![7; random(&mut state) % 200];
            let more = (random(&mut state) % 3) * 100;
            let id = random(&mut state) as u64;
            let frame = Frame { kind, id, length: (part.len() + more) as u32, part: part.into() };
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            match random(&mut state) % 4 {
                0 => bytes.truncate(random(&mut state) % (bytes.len() + 1)),
                1 => {
                    let place = random(&mut state) % bytes.len();
                    bytes[place] ^= 1 << (random(&mut state) % 8)
                }
                2 => bytes[9..13].fill(random(&mut state) as u8),
                _ => {}
            }

            sent += bytes.len();
            match Frame::read(&mut &bytes[..]).and_then(|frame| assembler.take(frame)) {
                Ok(Some(message)) => {
                    complete += 1;
                    assert!(message.bytes.len() <= sent && message.bytes.len() <= 4_096);
                    sent = 0
                }
                Ok(None) => {
                    let (message, length) = assembler.begun.as_ref().expect("begun");
                    assert!(message.bytes.len() < *length && message.bytes.capacity() <= 2 * 4_096)
                }
                Err(_) => {
                    refused += 1;
                    assembler = Assembler::new(4_096);
                    sent = 0
                }
            }
        }
        assert!(complete > count / 20 && refused > count / 20, "{complete} complete, {refused} refused")
    }
}
