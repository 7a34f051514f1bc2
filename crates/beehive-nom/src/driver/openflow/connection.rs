//! A session over a connection: one large read, one write a round.

use crate::driver::directory::{Claim, Entry, Verdict};
use crate::driver::openflow::access::Access;
use crate::driver::openflow::channel::{Channel, Moved, Plain};
use crate::driver::openflow::credentials::fault;
use crate::driver::openflow::half_open::Slot;
use crate::driver::openflow::session::{Session, SessionSettings, Step};
use crate::driver::{Close, Counters, Driver, Event, Events};
use crate::limits;
use crate::object::{Flow, NodeId, PacketOut, ReadFlows, WithdrawFlows};
use beehive::{Hive, Time};
use beehive_of::{Frame, Frames};
use bytes::{Buf, Bytes, BytesMut};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

/// How long the last words may take to leave.
const FAREWELL: Duration = Duration::from_millis(200);

/// A switch at the other end of a connection: TCP as it is, or with TLS.
pub struct Connection<C = Plain> {
    hive: Hive,
    channel: C,
    session: Session,
    counters: Arc<Counters>,
    entry: Entry,
    /// Its place among those that are not yet set up.
    slot: Option<Slot>,
    input: BytesMut,
    output: BytesMut,
    /// Bytes that the next read may bring, if there is that much to read.
    appetite: usize,
    /// Bytes that it may bring as there is room.
    room: usize,
    /// What the last wait brought.
    news: News,
    /// Bytes read since the task last yielded.
    since_yield: usize,
    alarm: Pin<Box<Sleep>>,
    alarm_at: Time,
    /// Since when the switch has taken nothing of what waits for it.
    stalled: Option<Time>,
    dispute: Option<Dispute>,
    access: Arc<Access>,
}

#[derive(Default)]
struct News {
    read: Option<std::io::Result<usize>>,
    challenged: bool,
    evicted: bool,
    verdict: Option<Verdict>,
}

/// Another connection says to be the same node, and is being probed.
struct Dispute {
    node: NodeId,
    kept: String,
    verdict: oneshot::Receiver<Verdict>,
}

impl<C: Channel> Connection<C> {
    /// A connection that was accepted.
    pub fn new(
        hive: &Hive,
        channel: C,
        entry: Entry,
        settings: SessionSettings,
        counters: Arc<Counters>,
    ) -> Connection<C> {
        let mut output = BytesMut::new();
        let session = Session::new(settings, counters.clone(), hive.now(), &mut output);
        Connection {
            hive: hive.clone(),
            channel,
            session,
            counters,
            entry,
            slot: None,
            input: BytesMut::new(),
            output,
            appetite: limits::READ_BYTES_FIRST,
            room: 0,
            news: News::default(),
            since_yield: 0,
            // the first wait sets it
            #[expect(clippy::disallowed_methods, reason = "at a real socket")]
            alarm: Box::pin(tokio::time::sleep(Duration::ZERO)),
            alarm_at: Time::ZERO,
            stalled: None,
            dispute: None,
            access: Arc::default(),
        }
    }

    /// Lets in only who may.
    pub(super) fn within(mut self, access: Arc<Access>) -> Connection<C> {
        self.access = access;
        self
    }

    /// Holds a place among those that are not yet set up, until it is.
    pub(super) fn holding(mut self, slot: Slot) -> Connection<C> {
        self.slot = Some(slot);
        self
    }

    fn receive(&mut self, result: std::io::Result<usize>) -> Result<(), Close> {
        match result {
            Ok(0) if self.is_mute() => Err(Close::WithoutAWord),
            Ok(0) => Err(Close::ByPeer),
            Ok(bytes) => {
                Counters::add(&self.counters.read_bytes, bytes as u64);
                self.since_yield += bytes;
                if bytes >= self.room {
                    self.appetite = (self.appetite * 4).min(limits::READ_BYTES_MAX)
                }
                Ok(())
            }
            // whoever closes without having read our greeting resets the connection; one that closes in the middle of a
            // handshake of TLS has not said a word either
            Err(error)
                if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof)
                    && self.is_mute() =>
            {
                Err(Close::WithoutAWord)
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(self.untrusted(fault(&error))),
            Err(error) => Err(Close::Network(error.to_string())),
        }
    }

    /// It has not shown who it is.
    fn untrusted(&self, why: String) -> Close {
        Counters::add(&self.counters.untrusted, 1);
        Close::Untrusted(why)
    }

    /// Whether it may be this node: by the list of those that may be, and by what it has shown.
    fn may_be(&mut self, node: NodeId) -> Result<(), Close> {
        let refused = if !self.access.admits_node(node) {
            Counters::add(&self.counters.unlisted, 1);
            Close::Unlisted(node)
        } else if let Err(why) = self.channel.vouches(node) {
            self.untrusted(why)
        } else {
            return Ok(());
        };
        self.session.forbid(&mut self.output);
        Err(refused)
    }

    /// Whether the switch has said nothing yet.
    fn is_mute(&self) -> bool {
        self.session.protocol().is_empty() && self.input.is_empty()
    }

    /// Takes the frames that are complete.
    fn frames<E: Events>(&mut self, now: Time, events: &mut E) -> Result<(), Close> {
        while !self.session.is_ready() {
            if self.dispute.is_some() {
                return Ok(());
            }
            let (frame, length) = match Frame::split(&self.input) {
                Ok(Some(split)) => split,
                Ok(None) => return self.session.foresee(&self.input, &mut self.output),
                Err(error) => return Err(self.session.unframed(&self.input, error, &mut self.output)),
            };
            let step = self.session.greet(frame, now, &mut self.output, events);
            self.input.advance(length);
            if self.output.len() > limits::BACKLOG_BYTES_SPARE {
                return Err(Close::Unread);
            }
            let step = step?;
            if let Step::Identified { node, .. } = step {
                self.may_be(node)?
            }
            match step {
                Step::Continue => {}
                Step::Identified { node, auxiliary: false } => self.claim(node, now, events)?,
                Step::Identified { node, auxiliary: true } => {
                    if !self.entry.accompany(node, self.session.protocol()) {
                        self.session.forbid(&mut self.output);
                        return Err(Close::Malformed(
                            "an auxiliary connection of a switch that is not there, or speaks otherwise"
                                .into(),
                        ));
                    }
                    self.session.admit(now, &mut self.output)?
                }
                Step::Ready => self.ready(),
            }
        }
        let mut frames = Frames::new(&self.input);
        let broken = frames.by_ref().find_map(Result::err);
        let complete = frames.consumed();
        if complete > 0 {
            let chunk: Bytes = self.input.split_to(complete).freeze();
            self.session.serve(&chunk, now, &mut self.output, events)?;
        }
        match broken {
            Some(error) => Err(self.session.unframed(&self.input, error, &mut self.output)),
            None => Ok(()),
        }
    }

    fn ready(&mut self) {
        self.slot = None;
        tracing::info!(node = %self.session.node(), address = self.entry.record().peer(),
            protocol = self.session.protocol(), ports = self.session.ports().len(), "a switch has joined");
    }

    fn claim<E: Events>(&mut self, node: NodeId, now: Time, events: &mut E) -> Result<(), Close> {
        match self.entry.claim(node, self.session.protocol()) {
            Claim::Granted => self.session.admit(now, &mut self.output),
            Claim::Taken(holder) => {
                let kept = holder.peer().to_string();
                match holder.challenge() {
                    Some(verdict) => self.dispute = Some(Dispute { node, kept, verdict }),
                    None => return Err(self.duplicate(node, kept, events)),
                }
                Ok(())
            }
        }
    }

    fn duplicate<E: Events>(&mut self, node: NodeId, kept: String, events: &mut E) -> Close {
        let refused = self.entry.record().peer().to_string();
        tracing::warn!(%node, refused, kept, "a second switch with this identity is refused: the first one is alive");
        self.entry.refused();
        self.session.forbid(&mut self.output);
        events.happened(Event::Duplicate { node, refused, kept });
        Close::Duplicate
    }

    /// What became of probes, ours and others'.
    fn probes<E: Events>(&mut self, now: Time, events: &mut E) -> Result<(), Close> {
        if let Some(verdict) = self.news.verdict.take()
            && let Some(Dispute { node, kept, .. }) = self.dispute.take()
        {
            match verdict {
                Verdict::Alive => return Err(self.duplicate(node, kept, events)),
                Verdict::Gone => self.claim(node, now, events)?,
            }
        }
        if std::mem::take(&mut self.news.challenged) && self.entry.record().is_challenged() {
            self.session.probe(now, &mut self.output)
        }
        match self.session.probed(now) {
            Some(true) => self.entry.record().tell(Verdict::Alive),
            Some(false) => return Err(Close::Yielded),
            None => {}
        }
        Ok(())
    }

    /// Gives memory back that a burst took.
    fn shrink(&mut self) {
        self.appetite = limits::READ_BYTES_FIRST;
        if self.input.is_empty() && self.input.capacity() > limits::READ_BYTES_FIRST {
            self.input = BytesMut::new()
        }
        if self.output.is_empty() {
            self.output = BytesMut::new()
        }
    }
}

impl<C: Channel> Driver for Connection<C> {
    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    async fn wait(&mut self) {
        if self.since_yield >= limits::BYTES_PER_TURN_MAX {
            self.since_yield = 0;
            tokio::task::yield_now().await
        }
        // the alarm is late rather than often set: what is read moves the deadline, the alarm looks when it rings
        let deadline = self.session.deadline();
        if self.alarm.is_elapsed() || deadline < self.alarm_at {
            let ahead = deadline.since(self.hive.now());
            #[expect(clippy::disallowed_methods, reason = "at a real socket")]
            self.alarm.as_mut().reset(Instant::now() + ahead.max(Duration::from_millis(1)));
            self.alarm_at = deadline;
        }
        // packets under way share the buffer: what is left of it is used up before another one is made
        if self.input.capacity() - self.input.len() < (self.appetite / 4).max(limits::READ_BYTES_FIRST / 2) {
            self.input.reserve(self.appetite)
        }
        self.room = self.input.capacity() - self.input.len();
        let is_disputed = self.dispute.is_some();
        let Connection { channel, input, news, alarm, dispute, entry, output, slot, .. } = self;
        let evicted = async {
            match slot {
                Some(slot) => slot.evicted().await,
                None => std::future::pending().await,
            }
        };
        let verdict = async {
            match dispute {
                // one that is dropped is one that is gone
                Some(dispute) => (&mut dispute.verdict).await.unwrap_or(Verdict::Gone),
                None => std::future::pending().await,
            }
        };
        let known = news.verdict.is_some();
        // who is not known to be who it says is not heard to the end: what it says stays with it
        let heard = is_disputed && input.len() >= limits::READ_BYTES_FIRST;
        tokio::select! {
            biased;
            verdict = verdict, if !known => news.verdict = Some(verdict),
            moved = channel.moved(input, !heard, !output.is_empty()) => {
                if let Moved::Read(result) = moved {
                    news.read = Some(result)
                }
            }
            () = alarm => {}
            () = entry.record().challenged() => news.challenged = true,
            () = evicted => news.evicted = true,
        }
    }

    fn take<E: Events>(&mut self, now: Time, events: &mut E) -> Result<(), Close> {
        if self.news.evicted {
            return Err(Close::Crowded);
        }
        if let Some(result) = self.news.read.take() {
            self.receive(result)?;
            self.frames(now, events)?
        }
        let resolved = self.news.verdict.is_some();
        self.probes(now, events)?;
        if resolved {
            // what came while the identity was in dispute
            self.frames(now, events)?
        }
        if self.alarm.is_elapsed() {
            let was_ready = self.session.is_ready();
            if now >= self.session.deadline() {
                self.session.tick(now, &mut self.output, events)?;
                if self.session.is_ready() {
                    self.shrink()
                }
            }
            if !was_ready && self.session.is_ready() {
                self.ready();
                self.frames(now, events)?
            }
        }
        if self.session.take_ports_changed() {
            self.entry.ready(self.session.ports())
        }
        Ok(())
    }

    #[inline]
    fn install(&mut self, flow: &Flow) {
        self.session.install(flow, &mut self.output)
    }

    fn withdraw(&mut self, flows: &WithdrawFlows) {
        self.session.withdraw(flows, &mut self.output)
    }

    fn read_flows(&mut self, wanted: &ReadFlows) {
        self.session.read_flows(wanted, &mut self.output)
    }

    #[inline]
    fn send(&mut self, packet: &PacketOut) {
        self.session.send(packet, &mut self.output)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.output.len() >= limits::BACKLOG_BYTES_MAX
    }

    fn flush(&mut self, now: Time) -> Result<(), Close> {
        self.session.ask_confirmation(&mut self.output);
        self.session.count();
        while !self.output.is_empty() {
            match self.channel.try_write(&self.output) {
                Ok(0) => return Err(Close::ByPeer),
                Ok(bytes) => {
                    Counters::add(&self.counters.written_bytes, bytes as u64);
                    self.stalled = None;
                    if bytes == self.output.len() {
                        self.output.clear() // keeps its memory, which advancing would not
                    } else {
                        self.output.advance(bytes)
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let since = *self.stalled.get_or_insert(now);
                    // however much that is: it was put together faster than any switch reads
                    if now.since(since) >= limits::BACKLOG_STALL_MAX {
                        return Err(Close::Unread);
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Close::Network(error.to_string())),
            }
        }
        Ok(())
    }

    async fn end(&mut self, close: &Close) {
        let node = self.session.node();
        let address = self.entry.record().peer();
        match close {
            Close::WithoutAWord => tracing::debug!(address, %close, "a connection is over"),
            Close::Stopping => tracing::debug!(%node, address, "a switch is let go"),
            _ if self.session.is_ready() => tracing::info!(%node, address, %close, "a switch has left"),
            // whoever is not let in comes again, and again
            Close::Untrusted(_) | Close::Unlisted(_) => {
                let refused = self.access.refused();
                if refused.is_power_of_two() {
                    tracing::warn!(address, %close, refused, "a connection is refused")
                } else {
                    tracing::debug!(address, %close, refused, "a connection is refused")
                }
            }
            _ => tracing::warn!(address, %close, "a connection is refused"),
        }
        let has_last_words = matches!(
            close,
            Close::Malformed(_)
                | Close::Version(_)
                | Close::Duplicate
                | Close::Stopping
                | Close::Untrusted(_)
                | Close::Unlisted(_)
        );
        if has_last_words {
            // so that they arrive before the end of the connection: a reset would overtake them
            #[expect(clippy::disallowed_methods, reason = "at a real socket")]
            let _ = tokio::time::timeout(FAREWELL, self.channel.finish()).await;
        }
    }
}
