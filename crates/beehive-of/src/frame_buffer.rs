//! A read buffer for drivers that returns messages without copying or allocating per message.

use bytes::{Buf, BytesMut};

use crate::error::Error;
use crate::frame::{Frame, Frames};
use crate::limits::{MESSAGE_LENGTH_MAX, READ_LENGTH_MAX, READ_LENGTH_MIN};

/// The received bytes of one connection.
///
/// ```
/// # use beehive_of::FrameBuffer;
/// # fn read(into: &mut bytes::BytesMut) { into.extend_from_slice(&[4, 0, 0, 8, 0, 0, 0, 1]) }
/// let mut received = FrameBuffer::new();
/// read(received.read_target()); // a socket's `read_buf`
/// while let Some(frame) = received.next_frame()? {
///     assert_eq!(frame.xid(), 1);
/// }
/// # Ok::<(), beehive_of::Error>(())
/// ```
///
/// The buffer holds at most one incomplete message plus the bytes of one read, provided that the caller takes
/// all complete messages between reads.
#[derive(Debug)]
pub struct FrameBuffer {
    buffer: BytesMut,
    /// Number of bytes at the start of `buffer` that were returned as messages. The next read drops them all
    /// at once.
    taken: usize,
    length_max: usize,
    /// Free space to reserve for the next read, in bytes. It doubles each time a read fills the buffer.
    read_length: usize,
}

impl Default for FrameBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameBuffer {
    /// Creates an empty buffer for messages of any length.
    pub fn new() -> Self {
        Self::limited(MESSAGE_LENGTH_MAX)
    }

    /// Creates an empty buffer that refuses messages longer than `length_max` bytes.
    pub fn limited(length_max: usize) -> Self {
        Self { buffer: BytesMut::new(), taken: 0, length_max, read_length: READ_LENGTH_MIN }
    }

    /// Returns the buffer to append the next read to. It has room for [`READ_LENGTH_MIN`] bytes at first; if
    /// reads fill it, the room grows up to [`READ_LENGTH_MAX`].
    pub fn read_target(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() > 0 && self.buffer.len() == self.buffer.capacity() {
            self.read_length = (2 * self.read_length).min(READ_LENGTH_MAX);
        }
        self.drop_taken();
        self.buffer.reserve(self.read_length);
        &mut self.buffer
    }

    /// Returns the next message, or `None` if more bytes must be read.
    ///
    /// # Errors
    ///
    /// Fails if the start of the next message cannot be determined; every later call fails the same way.
    /// Close the connection.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        let rest = self.buffer.get(self.taken..).unwrap_or(&[]);
        match Frame::split_limited(rest, self.length_max)? {
            Some((frame, length)) => {
                self.taken += length;
                Ok(Some(frame))
            }
            None => Ok(None),
        }
    }

    /// Returns all complete messages, without removing them. Pass [`Frames::consumed`] to
    /// [`FrameBuffer::consume`] afterwards.
    #[inline]
    pub fn frames(&self) -> Frames<'_> {
        Frames::limited(self.buffer.get(self.taken..).unwrap_or(&[]), self.length_max)
    }

    /// Removes the next `length` bytes.
    #[inline]
    pub fn consume(&mut self, length: usize) {
        self.taken = self.taken.saturating_add(length).min(self.buffer.len());
    }

    /// Returns the number of bytes that were read but not taken: complete messages not yet taken and the
    /// start of an incomplete one.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.taken
    }

    fn drop_taken(&mut self) {
        self.buffer.advance(self.taken);
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn echo(xid: u8, payload: usize) -> Vec<u8> {
        let mut bytes = std::vec![4, 2, 0, 0, 0, 0, 0, xid];
        bytes.resize(8 + payload, xid);
        let length = (bytes.len() as u16).to_be_bytes();
        bytes[2..4].copy_from_slice(&length);
        bytes
    }

    #[test]
    fn messages_survive_any_segmentation() {
        let stream: Vec<u8> = (0..20).flat_map(|xid| echo(xid, usize::from(xid) * 7)).collect();
        for segment in [1, 2, 3, 7, 8, 9, 64, stream.len()] {
            let mut received = FrameBuffer::new();
            let mut xids = Vec::new();
            for bytes in stream.chunks(segment) {
                received.read_target().extend_from_slice(bytes);
                while let Some(frame) = received.next_frame().unwrap() {
                    assert_eq!(frame.body().len(), frame.xid() as usize * 7);
                    xids.push(frame.xid());
                }
            }

            assert_eq!(xids, (0..20).collect::<Vec<u32>>());
            assert_eq!(received.pending(), 0);
        }
    }

    #[test]
    fn borrowed_together_and_consumed() {
        let mut received = FrameBuffer::new();
        received.read_target().extend_from_slice(&[echo(1, 3), echo(2, 4), echo(3, 5)].concat()[..30]);
        let mut frames = received.frames();
        let run: Vec<u32> = frames.by_ref().map(|frame| frame.unwrap().xid()).collect();
        assert_eq!(run, [1, 2]);

        let consumed = frames.consumed();
        received.consume(consumed);
        assert_eq!(received.pending(), 30 - 11 - 12);
        received.consume(usize::MAX);
        assert_eq!(received.pending(), 0);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut received = FrameBuffer::new();
        let bytes = echo(1, 60_000);
        for _ in 0..200 {
            for segment in bytes.chunks(9_000) {
                received.read_target().extend_from_slice(segment);
                while received.next_frame().unwrap().is_some() {}
            }
        }

        assert!(received.read_target().capacity() <= 4 * READ_LENGTH_MAX);
    }

    #[test]
    fn a_silent_connection_costs_little_and_a_busy_one_gets_room() {
        let mut received = FrameBuffer::new();
        assert!(received.read_target().capacity() <= 2 * READ_LENGTH_MIN);
        for _ in 0..10 {
            let target = received.read_target();
            let room = target.capacity() - target.len();
            target.extend_from_slice(&echo(1, 0).repeat(room.div_ceil(8))[..room]);
            while received.next_frame().unwrap().is_some() {}
        }

        let target = received.read_target();
        let room = target.capacity() - target.len();
        assert!((READ_LENGTH_MAX..=4 * READ_LENGTH_MAX).contains(&room), "{room}");
    }

    #[test]
    fn an_error_stays() {
        let mut received = FrameBuffer::limited(16);
        received.read_target().extend_from_slice(&echo(1, 9));
        assert!(received.next_frame().is_err() && received.next_frame().is_err());
    }
}
