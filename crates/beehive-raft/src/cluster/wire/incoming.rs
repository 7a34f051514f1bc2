//! The connection over which another hive sends: takes its packets, and serves its calls.

use super::frame::{Assembler, Frame, Kind, Message};
use super::lane::Lane;
use super::queue::Queue;
use super::served::Served;
use super::shared::Shared;
use super::tasks::Scope;
use super::text;
use crate::limits::wire as limits;
use beehive_core::HiveId;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Streaming};

/// The connection over which an admitted hive sends.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) shared: Arc<Shared>,
    pub(super) from: HiveId,
    pub(super) scope: Scope,
    served: [Served; Lane::COUNT],
    opened: [AtomicBool; Lane::COUNT],
}

/// A call that is served holds these.
struct Room {
    _slot: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

/// What limits the calls that are served at once in one lane.
struct Limit {
    slots: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

impl Limit {
    fn new() -> Limit {
        Limit {
            slots: Arc::new(Semaphore::new(limits::CALLS_SERVED_MAX)),
            bytes: Arc::new(Semaphore::new(limits::SERVED_BYTES_MAX)),
        }
    }

    fn bytes_for(length: usize) -> u32 {
        length.min(limits::SERVED_BYTES_MAX) as u32
    }

    /// Waits for room. The semaphores are never closed.
    async fn room(&self, length: usize) -> Option<Room> {
        let slot = self.slots.clone().acquire_owned().await.ok()?;
        let bytes = self.bytes.clone().acquire_many_owned(Limit::bytes_for(length)).await.ok()?;
        Some(Room { _slot: slot, _bytes: bytes })
    }

    fn try_room(&self, length: usize) -> Option<Room> {
        let slot = self.slots.clone().try_acquire_owned().ok()?;
        let bytes = self.bytes.clone().try_acquire_many_owned(Limit::bytes_for(length)).ok()?;
        Some(Room { _slot: slot, _bytes: bytes })
    }

    /// Waits until no call is served.
    async fn idle(&self) {
        let _ = self.slots.acquire_many(limits::CALLS_SERVED_MAX as u32).await;
    }
}

impl Incoming {
    pub(super) fn new(shared: Arc<Shared>, from: HiveId, scope: Scope) -> Arc<Incoming> {
        Arc::new(Incoming { shared, from, scope, served: Default::default(), opened: Default::default() })
    }

    /// Opens a lane. Returns false if it was opened before.
    pub(super) fn open(&self, lane: Lane) -> bool {
        !self.opened[lane as usize].swap(true, Ordering::Relaxed)
    }

    /// Serves a lane until it ends.
    pub(super) async fn serve(self: Arc<Incoming>, lane: Lane, input: Streaming<Frame>, answers: Arc<Queue>) {
        let limit = Limit::new();
        match self.read(lane, input, &answers, &limit).await {
            Ok(()) => {
                limit.idle().await;
                answers.finish()
            }
            Err(why) => {
                self.shared.note_violation(self.from, &why);
                self.scope.end()
            }
        }
    }

    /// Reads the messages of a lane. Returns an error if the other hive sends what it must not.
    async fn read(
        self: &Arc<Incoming>,
        lane: Lane,
        mut input: Streaming<Frame>,
        answers: &Arc<Queue>,
        limit: &Limit,
    ) -> Result<(), String> {
        let mut assembler = Assembler::new(lane.message_bytes_max());
        loop {
            let frame = tokio::select! {
                biased;
                () = self.shared.draining.cancelled() => return Ok(()),
                frame = input.message() => frame,
            };
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(status) if matches!(status.code(), Code::InvalidArgument | Code::OutOfRange) => {
                    return Err(text::of_status(&status));
                }
                // the connection has broken
                Err(_) => {
                    self.scope.end();
                    return Ok(());
                }
            };
            let Some(message) = assembler.take(frame)? else { continue };
            match message.kind {
                Kind::Packet => self.packet(lane, message.bytes),
                // The detector's lane is read on in any case, because it also carries what ends calls.
                Kind::Call if lane == Lane::Detector => match limit.try_room(message.bytes.len()) {
                    Some(room) => self.call(lane, message, answers, room),
                    None => {
                        answers.try_push(Kind::Refused, message.id, b"too many calls".to_vec());
                    }
                },
                Kind::Call => tokio::select! {
                    biased;
                    () = self.shared.draining.cancelled() => return Ok(()),
                    room = limit.room(message.bytes.len()) => {
                        if let Some(room) = room {
                            self.call(lane, message, answers, room)
                        }
                    }
                },
                Kind::Forget if lane == Lane::Detector => {
                    let lane = match message.bytes[..] {
                        [number] => Lane::from_number(number),
                        _ => None,
                    };
                    let lane = lane.ok_or("a call of no lane is forgotten")?;
                    self.served[lane as usize].forget(message.id)
                }
                kind => return Err(format!("a {kind:?} in the lane {lane:?}")),
            }
        }
    }

    fn packet(&self, lane: Lane, bytes: Vec<u8>) {
        if let Some(receiver) = self.shared.receiver() {
            let taken = catch_unwind(AssertUnwindSafe(|| receiver.packet(self.from, lane.channel(), bytes)));
            if taken.is_err() {
                tracing::error!(peer = self.from.0, "the receiver panicked on a packet ({lane:?})")
            }
        }
    }

    /// Serves a call, in a task of its own. It ends early if the connection breaks or the caller gives up.
    fn call(self: &Arc<Incoming>, lane: Lane, message: Message, answers: &Arc<Queue>, room: Room) {
        let Message { id, bytes, .. } = message;
        let Some(given_up) = self.served[lane as usize].begin(id) else { return };
        let (incoming, answers) = (self.clone(), answers.clone());
        self.scope.spawn(async move {
            let answer = tokio::select! {
                biased;
                () = given_up.cancelled() => None,
                answer = incoming.answer(lane, bytes) => Some(answer),
            };
            incoming.served[lane as usize].finish(id);
            if let Some((kind, bytes)) = answer {
                // fails if the connection has ended
                let _ = answers.push(kind, id, bytes, None).await;
            }
            drop(room)
        })
    }

    async fn answer(&self, lane: Lane, request: Vec<u8>) -> (Kind, Vec<u8>) {
        let refused = |why: &str| (Kind::Refused, why.as_bytes().to_vec());
        let Some(receiver) = self.shared.receiver() else {
            return refused("the hive does not take calls yet, or no longer");
        };
        let asked = catch_unwind(AssertUnwindSafe(|| receiver.call(self.from, lane.channel(), request)));
        let answer = match asked {
            Ok(mut answer) => {
                std::future::poll_fn(move |context| {
                    match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context))) {
                        Ok(poll) => poll.map(Ok),
                        Err(panic) => std::task::Poll::Ready(Err(panic)),
                    }
                })
                .await
            }
            Err(panic) => Err(panic),
        };
        match answer {
            Ok(Some(bytes)) if bytes.len() > limits::MESSAGE_BYTES_MAX => {
                tracing::error!(
                    peer = self.from.0,
                    "an answer of {} bytes is too long ({lane:?})",
                    bytes.len()
                );
                refused("the answer is too long")
            }
            Ok(Some(bytes)) => (Kind::Answer, bytes),
            Ok(None) => refused("the hive refuses the call"),
            Err(_) => {
                tracing::error!(peer = self.from.0, "the receiver panicked on a call ({lane:?})");
                refused("the hive failed to answer the call")
            }
        }
    }
}
