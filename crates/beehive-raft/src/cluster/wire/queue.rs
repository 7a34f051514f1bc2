//! The messages that wait in one lane of a connection, with a limit in bytes.

use super::frame::{Cut, Frame, Kind};
use super::lane::Lane;
use crate::limits::wire as limits;
use futures_core::Stream;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The messages that wait in one lane.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// A permit for each byte that may still wait. Closed with the queue.
    room: Arc<Semaphore>,
    waiting_bytes_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Queued>,
    reader: Option<Waker>,
    /// The stream ends after the last message.
    is_ending: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct Queued {
    message: Cut,
    ticket: Option<Ticket>,
    _room: OwnedSemaphorePermit,
}

/// The queue is closed, because the connection has ended.
#[derive(Debug)]
pub(super) struct Closed;

/// Decides between the sender of a call and its caller: a call is sent, or given up before it is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticket(Arc<AtomicU8>);

impl Ticket {
    const SENT: u8 = 1;
    const GIVEN_UP: u8 = 2;

    fn set(&self, state: u8) -> bool {
        self.0.compare_exchange(0, state, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The caller gives up. Returns false if the call has been sent.
    pub(super) fn give_up(&self) -> bool {
        self.set(Ticket::GIVEN_UP)
    }
}

impl Queue {
    pub(super) fn new(lane: Lane) -> Arc<Queue> {
        let waiting_bytes_max = lane.waiting_bytes_max();
        let room = Arc::new(Semaphore::new(waiting_bytes_max));
        Arc::new(Queue { waiting: Mutex::default(), room, waiting_bytes_max })
    }

    /// The room that a message takes. One that is longer than the limit takes all of it.
    fn room_for(&self, length: usize) -> u32 {
        (length + limits::WAITING_MESSAGE_BYTES).min(self.waiting_bytes_max) as u32
    }

    /// Appends a message. Returns false if there is no room, or if the queue is closed.
    pub(super) fn try_push(&self, kind: Kind, id: u64, bytes: Vec<u8>) -> bool {
        match self.room.clone().try_acquire_many_owned(self.room_for(bytes.len())) {
            Ok(room) => self.append(Cut::new(kind, id, bytes), None, room).is_ok(),
            Err(_) => false,
        }
    }

    /// Appends a message as soon as there is room.
    ///
    /// Dropping the future appends nothing.
    pub(super) async fn push(
        &self,
        kind: Kind,
        id: u64,
        bytes: Vec<u8>,
        ticket: Option<Ticket>,
    ) -> Result<(), Closed> {
        let room = self.room.clone().acquire_many_owned(self.room_for(bytes.len()));
        let room = room.await.map_err(|_| Closed)?;
        self.append(Cut::new(kind, id, bytes), ticket, room)
    }

    fn append(&self, message: Cut, ticket: Option<Ticket>, room: OwnedSemaphorePermit) -> Result<(), Closed> {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed || waiting.is_ending {
            return Err(Closed);
        }
        waiting.messages.push_back(Queued { message, ticket, _room: room });
        let reader = waiting.reader.take();
        drop(waiting);
        if let Some(reader) = reader {
            reader.wake()
        }
        Ok(())
    }

    /// Takes no further messages. The stream ends after those that wait.
    pub(super) fn finish(&self) {
        self.end(|waiting| waiting.is_ending = true)
    }

    /// Drops all messages and ends the stream.
    pub(super) fn close(&self) {
        self.end(|waiting| waiting.is_closed = true)
    }

    fn end(&self, how: impl FnOnce(&mut Waiting)) {
        self.room.close();
        let mut waiting = self.waiting.lock();
        how(&mut waiting);
        let dropped = if waiting.is_closed { std::mem::take(&mut waiting.messages) } else { VecDeque::new() };
        let reader = waiting.reader.take();
        drop(waiting);
        drop(dropped);
        if let Some(reader) = reader {
            reader.wake()
        }
    }

    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        let mut waiting = self.waiting.lock();
        loop {
            let Some(queued) = waiting.messages.front_mut() else {
                if waiting.is_ending || waiting.is_closed {
                    return Poll::Ready(None);
                }
                waiting.reader = Some(context.waker().clone());
                return Poll::Pending;
            };
            let is_wanted = queued.message.is_begun()
                || queued.ticket.as_ref().is_none_or(|ticket| ticket.set(Ticket::SENT));
            if !is_wanted {
                waiting.messages.pop_front();
                continue;
            }
            let (frame, is_last) = queued.message.next();
            if is_last {
                waiting.messages.pop_front();
            }
            return Poll::Ready(Some(frame));
        }
    }
}

/// The frames of a queue, as a stream. Closes the queue when it is dropped, because the connection has then ended.
#[derive(Debug)]
pub(super) struct Frames(pub(super) Arc<Queue>);

impl Stream for Frames {
    type Item = Frame;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        self.0.poll_next(context)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.0.close()
    }
}
