//! Runs an OpenFlow session over a channel, with one large read and one write per round.

use crate::driver::directory::{Claim, Entry, ProbeOutcome};
use crate::driver::openflow::accept::{Access, Slot};
use crate::driver::openflow::channel::{Channel, ChannelEvent, Plain};
use crate::driver::openflow::session::{Session, SessionSettings, Step};
use crate::driver::openflow::tls::describe_tls_error;
use crate::driver::{Close, Counters, Driver, Event, Events, Role};
use crate::limits;
use crate::object::{Flow, NodeId, PacketOut, Port, ReadFlows, WithdrawFlows};
use beehive::{Hive, Time};
use beehive_of::{Frame, Frames};
use bytes::{Buf, Bytes, BytesMut};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

/// Maximum time for sending the final message before the connection is closed.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The connection to one switch, over plain TCP or TLS.
pub struct Connection<C = Plain> {
    hive: Hive,
    channel: C,
    session: Session,
    counters: Arc<Counters>,
    entry: Entry,
    /// The handshake slot, or `None` once the handshake is complete.
    slot: Option<Slot>,
    input: BytesMut,
    output: BytesMut,
    /// Target size of the next read, in bytes. It grows with the traffic.
    read_target: usize,
    /// Free capacity of the input buffer at the latest read, in bytes.
    read_capacity: usize,
    /// The result of the latest wait.
    wait_result: WaitResult,
    /// Number of bytes read since the task last yielded.
    read_since_yield: usize,
    timer: Pin<Box<Sleep>>,
    timer_at: Time,
    /// Time since which the switch has accepted no byte of the pending output.
    stalled_since: Option<Time>,
    dispute: Option<Dispute>,
    access: Arc<Access>,
    /// The part of [`Channel::kept_waiting`] by which the time limit of the handshake has been extended.
    extended: Duration,
    /// [`Channel::progress`] when this connection was last asked to end.
    progress: u64,
    /// Number of packets that the hive takes now.
    room: u32,
    /// Whether input may be waiting in the socket: the latest read was as large as it could be, or input is held back.
    is_behind: bool,
}

impl<C> std::fmt::Debug for Connection<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("hive", &self.hive).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct WaitResult {
    read: Option<std::io::Result<usize>>,
    challenged: bool,
    evicted: bool,
    verdict: Option<ProbeOutcome>,
}

/// A pending conflict with another connection that holds the same node and is being probed.
struct Dispute {
    node: NodeId,
    kept: String,
    verdict: oneshot::Receiver<ProbeOutcome>,
}

impl<C: Channel> Connection<C> {
    /// Creates the driver of an accepted connection.
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
            read_target: limits::READ_BYTES_FIRST,
            read_capacity: 0,
            wait_result: WaitResult::default(),
            read_since_yield: 0,
            // the first call of `wait` sets the timer
            #[expect(clippy::disallowed_methods, reason = "timeouts at a socket use real time")]
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            timer_at: hive.now(),
            stalled_since: None,
            dispute: None,
            access: Arc::default(),
            extended: Duration::ZERO,
            progress: 0,
            room: u32::MAX,
            is_behind: false,
        }
    }

    /// Sets the access list.
    pub(super) fn with_access(mut self, access: Arc<Access>) -> Connection<C> {
        self.access = access;
        self
    }

    /// Sets the handshake slot, which the connection holds until the handshake is complete.
    pub(super) fn with_slot(mut self, slot: Slot) -> Connection<C> {
        self.slot = Some(slot);
        self
    }

    fn receive(&mut self, result: std::io::Result<usize>) -> Result<(), Close> {
        match result {
            Ok(0) if self.has_sent_nothing() => Err(Close::NoHello),
            Ok(0) => Err(Close::ByPeer),
            Ok(bytes) => {
                Counters::add(&self.counters.read_bytes, bytes as u64);
                self.read_since_yield += bytes;
                self.is_behind = bytes >= self.read_capacity;
                if self.is_behind {
                    let most = self.read_max(self.hive.now()).clamp(self.read_target, limits::READ_BYTES_MAX);
                    self.read_target = (self.read_target * 4).min(most)
                }
                Ok(())
            }
            // A peer that closes the connection without having read our hello resets the connection, and one that
            // closes it during the TLS handshake causes an unexpected end of file. Neither has sent a message.
            Err(error)
                if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof)
                    && self.has_sent_nothing() =>
            {
                Err(Close::NoHello)
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(self.untrusted(describe_tls_error(&error)))
            }
            Err(error) => Err(Close::Network(error.to_string())),
        }
    }

    /// Counts a peer that could not prove its identity, and returns the reason to close.
    fn untrusted(&self, why: String) -> Close {
        Counters::add(&self.counters.untrusted, 1);
        Close::Untrusted(why)
    }

    /// Checks that the access list and the peer's certificate allow the peer to claim the id `node`.
    fn authorize(&mut self, node: NodeId) -> Result<(), Close> {
        let refused = if !self.access.admits_node(node) {
            Counters::add(&self.counters.unlisted, 1);
            Close::Unlisted(node)
        } else if let Err(why) = self.channel.authorize(node) {
            self.untrusted(why)
        } else {
            return Ok(());
        };

        self.session.send_permission_error(&mut self.output);
        Err(refused)
    }

    /// Returns whether the peer has sent nothing so far.
    fn has_sent_nothing(&self) -> bool {
        self.session.protocol().is_empty() && self.input.is_empty()
    }

    /// Handles the complete frames in the input buffer.
    fn process_frames<E: Events>(&mut self, now: Time, events: &mut E) -> Result<(), Close> {
        while !self.session.is_ready() {
            if self.dispute.is_some() {
                return Ok(());
            }

            let (frame, length) = match Frame::split(&self.input) {
                Ok(Some(split)) => split,
                Ok(None) => return self.session.check_partial_frame(&self.input, &mut self.output),
                Err(error) => return Err(self.session.framing_error(&self.input, error, &mut self.output)),
            };
            let step = self.session.handshake(frame, now, &mut self.output, events);
            self.input.advance(length);

            if self.output.len() > limits::BACKLOG_BYTES_RESERVE {
                return Err(Close::NotReading);
            }

            let step = step?;
            if let Step::Identified { node, .. } = step {
                self.authorize(node)?
            }

            match step {
                Step::Continue => {}
                Step::Identified { node, auxiliary: false } => self.claim(node, now, events)?,
                Step::Identified { node, auxiliary: true } => {
                    if !self.entry.attach_auxiliary(node, self.session.protocol()) {
                        self.session.send_permission_error(&mut self.output);
                        return Err(Close::Malformed(
                            "auxiliary connection without a main connection of the same OpenFlow version"
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
            Some(error) => Err(self.session.framing_error(&self.input, error, &mut self.output)),
            None => Ok(()),
        }
    }

    fn ready(&mut self) {
        self.slot = None;
        tracing::info!(node = %self.session.node(), address = self.entry.record().peer(),
            protocol = self.session.protocol(), ports = self.session.ports().len(), "switch connected");
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
        tracing::warn!(%node, refused, kept, "refused a second connection with this datapath id: the first one is alive");
        self.entry.refused();
        self.session.send_permission_error(&mut self.output);
        events.event(Event::Duplicate { node, refused, kept });
        Close::Duplicate
    }

    /// Handles the outcomes of two probes: of another connection, for which this connection is waiting, and of this
    /// connection itself.
    fn resolve_probes<E: Events>(&mut self, now: Time, events: &mut E) -> Result<(), Close> {
        if let Some(verdict) = self.wait_result.verdict.take()
            && let Some(Dispute { node, kept, .. }) = self.dispute.take()
        {
            match verdict {
                ProbeOutcome::Alive => return Err(self.duplicate(node, kept, events)),
                ProbeOutcome::Gone => self.claim(node, now, events)?,
            }
        }

        if std::mem::take(&mut self.wait_result.challenged) && self.entry.record().is_challenged() {
            self.session.probe(now, &mut self.output)
        }

        match self.session.probe_outcome(now) {
            Some(true) => self.entry.record().report_probe(ProbeOutcome::Alive),
            Some(false) => return Err(Close::Replaced),
            None => {}
        }

        Ok(())
    }

    /// Returns the number of bytes to read at once: as much as the hive takes, and as much as possible for the sake of
    /// messages that have been waiting behind packets for too long, or whose arrival another connection awaits.
    fn read_max(&self, now: Time) -> usize {
        if !self.session.is_ready() {
            return usize::MAX;
        }

        match self.room {
            _ if self.session.input_age.is_overdue(now) || self.session.is_probed() => {
                limits::READ_BYTES_HELD_MAX
            }
            0 => 0,
            packets => {
                (packets as usize).saturating_mul(limits::PACKET_IN_BYTES).max(limits::READ_BYTES_FIRST)
            }
        }
    }

    /// Ends a handshake whose time is over, unless the controller itself was late: then the time limit is extended.
    fn check_handshake(&mut self, now: Time) {
        let kept_waiting = self.channel.kept_waiting();
        let mut late = kept_waiting.saturating_sub(std::mem::replace(&mut self.extended, kept_waiting));
        // this task should have run at the time for which it had set its timer
        let delay = now.since(self.timer_at);
        if delay >= limits::HANDSHAKE_LATE_MIN {
            late += delay
        }
        self.session.extend_handshake(late)
    }

    /// Returns whether this connection shall end in favor of others that wait. It stays if the peer has spoken.
    fn is_evicted(&mut self) -> bool {
        if !std::mem::take(&mut self.wait_result.evicted) {
            return false;
        }

        // during a TLS handshake, the bytes of the peer do not reach the session
        let progress = self.channel.progress();
        let has_moved = progress != std::mem::replace(&mut self.progress, progress);
        let stays = self.wait_result.read.is_some() || has_moved || self.channel.has_unread();
        if stays && let Some(slot) = &self.slot {
            slot.stay()
        }
        !stays
    }

    /// Frees buffer memory allocated by a burst.
    fn shrink(&mut self) {
        self.read_target = limits::READ_BYTES_FIRST;
        if self.input.is_empty() && self.input.capacity() > limits::READ_BYTES_FIRST {
            self.input = BytesMut::new()
        }
        if self.output.is_empty() {
            self.output = BytesMut::new()
        }
    }
}

impl<C: Channel> Driver for Connection<C> {
    const HOLDS_INPUT: bool = true;

    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    #[inline]
    fn set_room(&mut self, packets: u32) {
        self.room = packets;
        self.is_behind |= packets == 0
    }

    async fn wait(&mut self) {
        if self.read_since_yield >= limits::BYTES_PER_YIELD_MAX {
            self.read_since_yield = 0;
            tokio::task::yield_now().await
        }

        // The timer is set rarely and may fire early. Input postpones the deadline without resetting the timer; when
        // the timer fires, it is set again to the new deadline.
        let now = self.hive.now();
        let mut deadline = self.session.deadline();
        if self.is_behind && self.session.is_ready() {
            deadline = deadline.min(self.session.input_age.deadline(now))
        }
        if self.timer.is_elapsed() || deadline < self.timer_at {
            let ahead = deadline.since(now);
            #[expect(clippy::disallowed_methods, reason = "timeouts at a socket use real time")]
            self.timer.as_mut().reset(Instant::now() + ahead.max(Duration::from_millis(1)));
            self.timer_at = deadline;
        }

        // packets in flight share the buffer, so its free space is used up before another buffer is allocated
        if self.input.capacity() - self.input.len() < (self.read_target / 4).max(limits::READ_BYTES_FIRST / 2)
        {
            self.input.reserve(self.read_target)
        }

        let mut read_max = self.read_max(now);
        self.read_capacity = (self.input.capacity() - self.input.len()).min(read_max);
        let is_disputed = self.dispute.is_some();
        let Connection { channel, input, wait_result, timer, dispute, entry, output, slot, .. } = self;
        let evicted = async {
            match slot {
                Some(slot) => slot.evicted().await,
                None => std::future::pending().await,
            }
        };

        let verdict = async {
            match dispute {
                // if the sender was dropped, the other connection is gone
                Some(dispute) => (&mut dispute.verdict).await.unwrap_or(ProbeOutcome::Gone),
                None => std::future::pending().await,
            }
        };

        let known = wait_result.verdict.is_some();
        // limits the buffered input of a peer whose identity is in dispute: the remaining input stays in the socket
        if is_disputed && input.len() >= limits::READ_BYTES_FIRST {
            read_max = 0
        }
        tokio::select! {
            biased;
            verdict = verdict, if !known => wait_result.verdict = Some(verdict),
            event = channel.next_event(input, read_max, !output.is_empty()) => {
                if let ChannelEvent::Read(result) = event {
                    wait_result.read = Some(result)
                }
            }
            () = timer => {}
            () = entry.record().challenged() => wait_result.challenged = true,
            () = evicted => wait_result.evicted = true,
        }
    }

    fn take<E: Events>(&mut self, now: Time, events: &mut E) -> Result<(), Close> {
        if self.is_evicted() {
            return Err(Close::Evicted);
        }

        if let Some(result) = self.wait_result.read.take() {
            if let Some(slot) = &self.slot {
                slot.is_ours()
            }
            self.receive(result)?;
            self.process_frames(now, events)?
        }

        let resolved = self.wait_result.verdict.is_some();
        self.resolve_probes(now, events)?;
        if resolved {
            // handles the input that arrived during the dispute
            self.process_frames(now, events)?
        }

        if self.is_behind && self.session.is_ready() {
            self.session.probe_input_age(now, &mut self.output)
        }

        if self.timer.is_elapsed() {
            if self.room == 0 && self.channel.has_unread() {
                self.session.input_is_held(now)
            }
            let was_ready = self.session.is_ready();
            if !was_ready {
                self.check_handshake(now)
            }
            if now >= self.session.deadline() {
                self.session.tick(now, &mut self.output, events)?;
                if self.session.is_ready() {
                    self.shrink()
                }
            }
            if !was_ready && self.session.is_ready() {
                self.ready();
                self.process_frames(now, events)?
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

    fn request_role(&mut self, role: Role) -> bool {
        self.session.request_role(role, &mut self.output)
    }

    fn ports(&self) -> Vec<Port> {
        self.session.ports()
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.output.len() >= limits::BACKLOG_BYTES_MAX
    }

    fn flush(&mut self, now: Time) -> Result<(), Close> {
        self.session.request_confirmation(&mut self.output);
        self.session.flush_tally();
        while !self.output.is_empty() {
            match self.channel.try_write(&self.output) {
                Ok(0) => return Err(Close::ByPeer),
                Ok(bytes) => {
                    Counters::add(&self.counters.written_bytes, bytes as u64);
                    self.stalled_since = None;
                    if bytes == self.output.len() {
                        self.output.clear() // keeps the allocated memory, unlike `advance`
                    } else {
                        self.output.advance(bytes)
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let since = *self.stalled_since.get_or_insert(now);
                    // limits the time rather than the amount of output, because output is produced faster than any
                    // switch reads it
                    if now.since(since) >= limits::BACKLOG_STALL_TIMEOUT {
                        return Err(Close::NotReading);
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Close::Network(error.to_string())),
            }
        }

        // while the identity is in dispute, the peer waits for the outcome of the probe
        if let Some(slot) = &self.slot
            && self.dispute.is_none()
        {
            slot.is_theirs(now)
        }

        Ok(())
    }

    async fn end(&mut self, close: &Close) {
        let node = self.session.node();
        let address = self.entry.record().peer();
        match close {
            Close::NoHello => tracing::debug!(address, %close, "connection closed"),
            Close::Stopping => {
                tracing::debug!(%node, address, "switch disconnected: the controller is stopping")
            }
            _ if self.session.is_ready() => tracing::info!(%node, address, %close, "switch disconnected"),
            // logs only at powers of two, because a refused peer connects again and again
            Close::Untrusted(_) | Close::Unlisted(_) => {
                let refused = self.access.refused();
                if refused.is_power_of_two() {
                    tracing::warn!(address, %close, refused, "connection refused")
                } else {
                    tracing::debug!(address, %close, refused, "connection refused")
                }
            }
            _ => tracing::warn!(address, %close, "connection refused"),
        }

        let has_final_message = matches!(
            close,
            Close::Malformed(_)
                | Close::Version(_)
                | Close::Duplicate
                | Close::Stopping
                | Close::Untrusted(_)
                | Close::Unlisted(_)
        );

        if has_final_message {
            // waits until the final message has arrived, because a connection reset would discard it
            #[expect(clippy::disallowed_methods, reason = "timeouts at a socket use real time")]
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, self.channel.finish()).await;
        }
    }
}
