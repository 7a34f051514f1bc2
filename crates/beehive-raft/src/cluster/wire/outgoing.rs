//! The connection over which a hive sends packets and calls to another one.

use super::calls::{Answer, Calls};
use super::frame::{Assembler, Frame, Kind};
use super::lane::Lane;
use super::queue::{Frames, Queue, Ticket};
use super::tasks::Scope;
use super::text;
use crate::cluster::transport::{Channel, Unanswered};
use crate::limits::wire as limits;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;
use tonic::Streaming;

/// The connection over which a hive sends packets and calls to another one.
#[derive(Debug)]
pub(super) struct Outgoing {
    lanes: [OutgoingLane; Lane::COUNT],
    pub(super) scope: Scope,
    pub(super) since: Instant,
    /// Why the connection has ended.
    why: Mutex<Option<String>>,
}

#[derive(Debug)]
struct OutgoingLane {
    queue: Arc<Queue>,
    calls: Calls,
}

/// A call whose caller may give up.
struct Call<'a> {
    outgoing: &'a Outgoing,
    lane: Lane,
    id: u64,
    ticket: Ticket,
    is_answered: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.outgoing.lane(self.lane).calls.forget(self.id);
        if !self.ticket.give_up() {
            // It has been sent. If there is no room for this, the other hive serves a call that nobody waits for.
            let detector = self.outgoing.lane(Lane::Detector);
            detector.queue.try_push(Kind::Forget, self.id, vec![self.lane as u8]);
        }
    }
}

impl Outgoing {
    pub(super) fn new(scope: Scope) -> Arc<Outgoing> {
        let lane = |lane| OutgoingLane { queue: Queue::new(lane), calls: Calls::default() };
        Arc::new(Outgoing { lanes: Lane::ALL.map(lane), scope, since: Instant::now(), why: Mutex::default() })
    }

    fn lane(&self, lane: Lane) -> &OutgoingLane {
        &self.lanes[lane as usize]
    }

    /// What the stream of a lane sends.
    pub(super) fn frames(&self, lane: Lane) -> Frames {
        Frames(self.lane(lane).queue.clone())
    }

    /// Sends a packet. Returns false if it was dropped.
    pub(super) fn send(&self, channel: Channel, packet: Vec<u8>) -> bool {
        let lane = Lane::of(channel, packet.len());
        packet.len() <= lane.message_bytes_max() && self.lane(lane).queue.try_push(Kind::Packet, 0, packet)
    }

    /// Calls the other hive. Dropping the future gives the call up.
    pub(super) async fn call(self: Arc<Outgoing>, channel: Channel, request: Vec<u8>) -> Answer {
        let number = Lane::of(channel, request.len());
        let (length, length_max) = (request.len(), number.message_bytes_max());
        if length > length_max {
            let why = format!(
                "a call of {length} bytes is too long: at most {length_max} are carried ({channel:?})"
            );
            return Err(Unanswered { why });
        }

        let lane = self.lane(number);
        let (id, answer) = lane.calls.begin()?;
        let mut call =
            Call { outgoing: &self, lane: number, id, ticket: Ticket::default(), is_answered: false };
        let pushed = lane.queue.push(Kind::Call, id, request, Some(call.ticket.clone())).await;
        if pushed.is_err() {
            return Err(self.broken());
        }
        let answer = answer.await.unwrap_or_else(|_| Err(self.broken()));
        call.is_answered = true;
        answer
    }

    fn broken(&self) -> Unanswered {
        let why = self.why.lock().clone().unwrap_or_else(|| "the connection has ended".into());
        Unanswered { why }
    }

    /// Takes the answers of a lane. Returns when no more can come, or the reason why the connection must be closed.
    pub(super) async fn read(&self, lane: Lane, mut answers: Streaming<Frame>) -> Result<(), String> {
        let calls = &self.lane(lane).calls;
        let mut assembler = Assembler::new(limits::MESSAGE_BYTES_MAX);
        loop {
            let frame = match answers.message().await {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(status) => return Err(text::of_status(&status)),
            };
            let Some(message) = assembler.take(frame)? else { continue };
            match message.kind {
                Kind::Answer => calls.answer(message.id, Ok(message.bytes)),
                Kind::Refused => {
                    let why = text::tame(&String::from_utf8_lossy(&message.bytes));
                    calls.answer(message.id, Err(Unanswered { why }))
                }
                kind => return Err(format!("the other hive answered with a {kind:?}")),
            }
        }
    }

    /// Takes no further messages. The streams end when what waits is sent.
    pub(super) fn finish(&self) {
        for lane in &self.lanes {
            lane.queue.finish()
        }
    }

    /// Ends the connection, and all calls with it.
    pub(super) fn end(&self, why: &str) {
        self.why.lock().get_or_insert_with(|| why.to_string());
        self.scope.end();
        for lane in &self.lanes {
            lane.queue.close();
            lane.calls.end(why)
        }
    }

    pub(super) fn calls_in_flight(&self) -> usize {
        self.lanes.iter().map(|lane| lane.calls.count()).sum()
    }
}
