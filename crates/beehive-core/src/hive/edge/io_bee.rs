//! IO bees: supervised tasks that own sockets, timers and other external resources. An IO bee never
//! migrates.
//!
//! An IO bee needs credits to emit batches. Each message from outside holds a credit until everything caused
//! by that message is done. An IO bee that is faster than the hive must therefore wait or shed load, so
//! memory use stays bounded. Messages sent to the IO bee's address, and answers to messages it has emitted,
//! arrive as [`Mail`].

use crate::hive::admission::credits::{Cause, Credits};
use crate::hive::admission::outside_lanes::{Admission, Lanes, Numbers, OutsideLane, Room};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::Hive;
use crate::hive::dispatch::outputs::Outputs;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{Place, Stateless, Turn};
use crate::hive::message::batch::{Address, Chain, Source, chain_from};
use crate::hive::message::inbox::{Inbox, Mail};
use crate::message::Message;
use crate::time::Time;
use beehive_protocol::Seq;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// No credit is left: too many earlier messages of this IO bee are still in flight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Busy;

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no credit is left: earlier messages of this IO bee are still in flight")
    }
}
beehive_protocol::debug_is_display!(Busy);

impl std::error::Error for Busy {}

/// The handle of an IO bee, for emitting, sending and receiving. Dropping it closes the IO bee's address.
pub struct Io {
    hive: Hive,
    id: u64,
    inbox: Arc<Inbox>,
    credits: Arc<Credits>,
    out: Outputs,
    /// Whether `try_flush` has kept the batch, to be flushed by the next call that waits.
    is_kept: bool,
    /// Messages that cannot be delivered yet.
    queue: SenderQueue,
    /// The lane on which this IO bee's messages are deduplicated; `None` without a journal.
    lane: Option<Arc<OutsideLane>>,
    /// The next sequence number on the lane.
    numbers: Numbers,
    /// Seed of the random numbers for the handlers of this IO bee's messages.
    chance: u64,
    /// Number of the causal chain that the next message begins.
    chain: u64,
    /// The place where this IO bee's messages are handled (worker or runner).
    place: Place,
}

impl std::fmt::Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").field("hive", &self.hive).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Io {
    /// Creates an IO bee that may have `credits` messages in flight, but at least one.
    pub(crate) fn new(hive: &Hive, credits: u32) -> Io {
        let inner = hive.inner();
        let (id, inbox) = inner.io.open();

        let lane = inner.logs.as_ref().map(|logs| logs.lanes.open(inner.platform.random()));
        let chance = inner.platform.random();

        Io {
            hive: hive.clone(),
            id,
            inbox,
            // without a credit, the IO bee could never emit
            credits: Credits::new(credits.max(1)),
            out: Outputs::new(inner.types.clone()),
            is_kept: false,
            queue: SenderQueue::default(),
            numbers: lane.as_ref().map_or(Numbers::NONE, |lane| Numbers::new(lane.id(), Seq::ZERO)),
            lane,
            chance,
            chain: chain_from(chance),
            place: Place::Runners,
        }
    }

    /// From now on, bees receiving this IO bee's messages run on the same worker as the IO bee's own task, as
    /// soon as that task yields.
    ///
    /// This gives the lowest latency for an IO bee whose messages mostly go to one bee, such as a switch
    /// connection, because no other thread has to be woken. By default, the hive's runners run the bees, on
    /// any core. In both cases, the task itself runs no handlers, so a slow handler does not delay it.
    pub fn run_here(&mut self) {
        self.place = Place::Worker
    }

    /// Continues lane `lane`, which only this sender may use. If the sender resends messages under their old
    /// numbers after a crash, they are still handled only once. The sender must not resend numbers below
    /// `next_seq`. Without a journal, this has no effect.
    ///
    /// Each flush numbers its messages type by type, in the order in which the batch first uses the types,
    /// and within a type in the order of emission. The messages of an IO bee that emits only one type are
    /// therefore numbered in the order of emission. A stateless handler's outputs are identified by the
    /// message that it handled, so they must be a function of that message alone.
    ///
    /// The log remembers the lane until [`Io::retire`] is called. Only the lower 62 bits of `lane` are
    /// used.
    pub fn resume(&mut self, lane: u64, next_seq: u64) {
        let Some(logs) = &self.hive.inner().logs else { return };
        if let Some(unused) = self.lane.take() {
            end_unless_lasting(&logs.lanes, &unused)
        }

        let next_seq = Seq(next_seq);
        let lane = logs.lanes.resume(lane, next_seq);
        logs.quarantine.resumed(lane.id(), next_seq);

        self.numbers = Numbers::new(lane.id(), next_seq);
        self.lane = Some(lane)
    }

    /// Declares that this IO bee's lane will never be used again, so that the hive and the log can forget it.
    /// Ends the IO bee and drops unflushed messages.
    pub fn retire(self) {
        if let (Some(logs), Some(lane)) = (&self.hive.inner().logs, &self.lane) {
            logs.lanes.end(lane)
        }
    }

    /// Returns the lane's low-water mark. All messages with lower numbers are done, so a sender that may
    /// resume after a crash need not remember them. Returns zero without a journal.
    pub fn floor(&self) -> u64 {
        self.lane.as_ref().map_or(0, |lane| lane.floor().0)
    }

    /// Returns the number of this IO bee on its hive.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the address at which this IO bee receives messages.
    pub fn address(&self) -> Address {
        Address::Io(self.hive.id(), self.id)
    }

    /// Returns the hive.
    pub fn hive(&self) -> &Hive {
        &self.hive
    }

    /// Returns the current time on the hive's clock.
    pub fn now(&self) -> Time {
        self.hive.inner().now()
    }

    /// Adds a message to the batch of the next flush. A batch holds at most
    /// [`limits::EMITS_PER_TRANSACTION_MAX`](crate::limits::EMITS_PER_TRANSACTION_MAX) messages. Further
    /// messages are dropped, and the flush logs an error.
    #[inline]
    pub fn emit<M: Message>(&mut self, message: M) {
        self.out.emit(message)
    }

    /// Like [`Io::emit`], but sends the message to one address only.
    pub fn send<M: Message>(&mut self, to: Address, message: M) {
        self.out.send(to, message)
    }

    /// Returns the number of messages in the batch.
    pub fn buffered(&self) -> u32 {
        self.out.len()
    }

    /// Returns the number of free credits, that is, how many messages can be flushed now without waiting for
    /// credits.
    pub fn credits(&self) -> u32 {
        self.credits.free()
    }

    /// Waits until `wanted` credits are free. The future does not borrow the `Io`, so you can await it
    /// together with other futures. Cancel-safe.
    pub fn credits_returned(&self, wanted: u32) -> impl Future<Output = ()> + Send + use<> {
        let credits = self.credits.clone();
        async move { credits.available(wanted).await }
    }

    /// Waits for credits, and then flushes the batch, in order. A batch larger than the credit limit takes
    /// all credits. With a journal, this also waits while many messages are uncommitted: if the oldest one is
    /// [`limits::LANE_WINDOW_MAX`](crate::limits::LANE_WINDOW_MAX) numbers behind, at most half as many may be. On a
    /// [resumed](Io::resume) lane, it waits for the oldest one.
    ///
    /// During the wait, unread mail gives up its credits, so an IO bee that never reads its mail cannot block
    /// itself. Unread mail beyond [`limits::MAIL_UNREAD_MAX`](crate::limits::MAIL_UNREAD_MAX) is dropped and
    /// counted in [`Status::mail_shed`](crate::Status::mail_shed).
    ///
    /// If the hive has stopped, this drops the batch without waiting.
    ///
    /// Cancel-safe: unflushed messages stay in the batch.
    pub async fn flush(&mut self) {
        let wanted = self.wanted();
        if wanted > 0 {
            while !(self.has_room() && self.credits.take_all(wanted)) {
                let ended = self.hive.inner().ended.notified();
                if self.hive.inner().is_over() {
                    self.out.discard();
                    // yields, so that a caller that flushes in a loop does not starve other tasks
                    return tokio::task::yield_now().await;
                }

                self.inbox.release();
                tokio::select! {
                    biased;
                    () = self.room() => {}
                    () = self.inbox.arrived.notified() => {}
                    () = ended => {}
                }
            }
            self.hand_over(wanted)
        }
    }

    /// Flushes the batch if enough credits are free. Otherwise keeps the batch and returns [`Busy`].
    /// [`Io::receive`] and [`Io::arrived`] then flush the batch while they wait, as soon as enough credits
    /// are free.
    ///
    /// The credits of a message return shortly after its answer has arrived, so this may return [`Busy`]
    /// although all answers have arrived. An IO bee that then waits for mail does not hang, because the batch
    /// is flushed during the wait, once the credits are free.
    pub fn try_flush(&mut self) -> Result<(), Busy> {
        let wanted = self.wanted();
        if wanted > 0 {
            if !(self.has_room() && self.credits.take_all(wanted)) {
                self.is_kept = true;
                return Err(Busy);
            }
            self.hand_over(wanted);
        }
        Ok(())
    }

    /// Returns the number of credits needed for the batch.
    #[inline]
    fn wanted(&self) -> u32 {
        self.out.len().min(self.credits.limit())
    }

    /// Returns a future that waits until the lane may have room for the batch, or may be held up, and enough credits may be
    /// free. Cancel-safe.
    fn room(&self) -> impl Future<Output = ()> + Send + use<'_> {
        let (lane, next, count) = (self.lane.as_deref(), self.numbers.seq(), self.out.len() as u64);
        let (credits, wanted) = (&*self.credits, self.wanted());
        async move {
            if let Some(lane) = lane {
                lane.room_or_held_up(Some(next), count).await
            }
            credits.available(wanted).await
        }
    }

    /// Checks whether the batch fits into the window of its lane. If a few messages hold up the lane, because their log cannot
    /// commit, continues on another lane, so that messages to other logs go on.
    ///
    /// The order of messages does not depend on the lane: they go through this IO bee's queue.
    #[inline]
    fn has_room(&mut self) -> bool {
        let Some(lane) = &self.lane else { return true };
        match lane.room_for(Some(self.numbers.seq()), self.out.len() as u64) {
            Room::Free => true,
            Room::HeldUp => {
                self.change_lane();
                true
            }
            Room::Full => false,
        }
    }

    /// Ends the lane, and opens another one.
    #[cold]
    fn change_lane(&mut self) {
        let inner = self.hive.inner();
        if let (Some(logs), Some(lane)) = (&inner.logs, &self.lane) {
            logs.lanes.end(lane);
            let lane = logs.lanes.open(inner.platform.random());
            self.numbers = Numbers::new(lane.id(), Seq::ZERO);
            self.lane = Some(lane)
        }
    }

    /// Routes the batch, for which the caller has taken `credits` credits.
    fn hand_over(&mut self, credits: u32) {
        self.route(Some(Cause::new(&self.credits, credits, &self.hive.inner().in_flight)))
    }

    /// Routes the batch. Advances the sequence number, the number of the next causal chain and the random
    /// seed.
    fn route(&mut self, cause: Option<Arc<Cause>>) {
        self.is_kept = false;
        let count = self.out.len();
        if let Some(why) = self.out.take_overflow() {
            tracing::error!(
                count,
                why,
                "an IO bee emitted more messages than one batch may hold; the excess was dropped"
            );
        }

        self.chance = self.chance.wrapping_add(count as u64);
        let source = Source {
            origin: self.hive.id(),
            sender: self.address(),
            bee: None,
            handler: None,
            hops: 0,
            chain: Chain::begun(self.chain),
            numbers: self.numbers,
            chance: self.chance,
            is_logged: false,
        };

        let (out, queue, inbox, numbers) = (&mut self.out, &mut self.queue, &self.inbox, &mut self.numbers);
        let by = self.lane.as_ref().map_or(Admission::Inside, Admission::Lane);
        self.chain = self.chain.wrapping_add(count as u64);
        Turn::with(self.hive.inner(), self.place, |turn| {
            turn.cause = cause;
            turn.stateless = Stateless::InOrder;
            out.freeze(source, Some(inbox), numbers, by);
            out.route(u16::MAX, &mut RouteContext::new(queue, turn))
        })
    }

    /// Flushes the batch without taking credits. For rare messages that must not wait behind packets, such as
    /// the report that a port is down or that a switch has left.
    pub fn flush_control(&mut self) {
        self.route(None)
    }

    /// Takes the next mail, if there is any.
    pub fn try_receive(&mut self) -> Option<Mail> {
        self.inbox.pop()
    }

    /// Moves all mail to the end of `into`.
    pub fn receive_into(&mut self, into: &mut VecDeque<Mail>) {
        self.inbox.append_to(into)
    }

    /// Returns the number of messages to this IO bee dropped since the last call because
    /// [`limits::MAIL_UNREAD_MAX`](crate::limits::MAIL_UNREAD_MAX) messages were unread. If the result is not
    /// zero, the IO bee should ask its senders for their current state. Dropped answers are not counted.
    pub fn take_lost(&mut self) -> u64 {
        // IO bees call this after every read of their mail, so the common case is a single load. Relaxed
        // ordering suffices, because the count guards no other data
        match self.inbox.lost.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.inbox.lost.swap(0, Ordering::Relaxed),
        }
    }

    /// Waits for mail and returns it. While waiting, flushes any batch kept by [`Io::try_flush`].
    /// Cancel-safe.
    pub async fn receive(&mut self) -> Mail {
        loop {
            if let Some(mail) = self.inbox.pop() {
                return mail;
            }
            self.arrived().await
        }
    }

    /// Waits until there may be mail. While waiting, flushes any batch kept by [`Io::try_flush`].
    /// Cancel-safe.
    pub async fn arrived(&mut self) {
        while self.inbox.is_empty() {
            if !self.is_kept {
                return self.inbox.arrived.notified().await;
            }

            tokio::select! {
                biased;
                () = self.inbox.arrived.notified() => return,
                () = self.room() => {
                    let _ = self.try_flush();
                }
            }
        }
    }

    /// Waits until the hive begins to stop. The IO bee should then finish its work and return.
    pub async fn stopping(&mut self) {
        self.hive.stopping().await
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        let inner = self.hive.inner();
        inner.io.close(self.id);
        if let (Some(logs), Some(lane)) = (&inner.logs, &self.lane) {
            end_unless_lasting(&logs.lanes, lane)
        }
    }
}

/// Ends a lane, unless its sender may resume it after a crash.
fn end_unless_lasting(lanes: &Lanes, lane: &OutsideLane) {
    if !lane.id().is_lasting() {
        lanes.end(lane)
    }
}
