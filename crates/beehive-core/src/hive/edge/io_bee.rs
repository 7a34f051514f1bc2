//! IO bees: supervised tasks that own sockets, timers and other things outside. They never migrate.
//!
//! An IO bee emits batches under credits: a message from outside holds a credit until everything it caused is done, so
//! an IO bee that is ahead of the hive waits, or sheds, and memory stays flat. What apps send to its address, and the
//! answers to what it emitted, come back as [`Mail`].

use crate::hive::admission::credits::{Cause, Credits};
use crate::hive::admission::outside_lanes::{Admission, Numbers, OutsideLane, is_lasting};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::Hive;
use crate::hive::dispatch::outputs::Outputs;
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::{Link, Place, Stateless, Turn};
use crate::hive::message::batch::{Address, Chain, Source, chain_from};
use crate::hive::message::inbox::{Inbox, Mail};
use crate::message::Message;
use crate::time::Time;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// No credit is left: the hive has not yet done what this IO bee brought in before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no credit is left: earlier messages of this IO bee are still under way")
    }
}
impl std::error::Error for Busy {}

/// The hands of an IO bee: emit, send, receive. Dropping it closes its address.
pub struct Io {
    hive: Hive,
    id: u64,
    inbox: Arc<Inbox>,
    credits: Arc<Credits>,
    out: Outputs,
    lane: SenderQueue,
    /// Its number line, where messages are remembered; and the next number.
    line: Option<Arc<OutsideLane>>,
    numbers: Numbers,
    chance: u64,
    /// Number of the chain of causes that the next message begins.
    chain: u64,
    place: Place,
}

impl Io {
    pub(crate) fn new(hive: &Hive, credits: u32) -> Io {
        let inner = hive.inner();
        let (id, inbox) = inner.io.open();
        let line = inner.link.as_ref().map(|link| link.lanes.open(inner.platform.random()));
        let chance = inner.platform.random();
        Io {
            hive: hive.clone(),
            id,
            inbox,
            credits: Credits::new(credits),
            out: Outputs::new(inner.types.clone()),
            lane: SenderQueue::default(),
            numbers: line.as_ref().map_or(Numbers::NONE, |line| Numbers::new(line.id(), 0)),
            line,
            chance,
            chain: chain_from(chance),
            place: Place::Runners,
        }
    }

    /// Runs what this IO bee brings in on the worker that its task is on, as soon as the task waits for something.
    ///
    /// The way with the least delay, for an IO bee whose messages go to one place, such as the connection of a switch: no
    /// other thread has to be woken. By default the hive's runners do the work, on any core. In both cases the task itself
    /// runs no handler: one that takes long does not hold it up.
    pub fn run_here(&mut self) {
        self.place = Place::Worker
    }

    /// Continues the number line `lane`, which nobody else uses: after a crash, messages sent again under their old numbers
    /// are handled once. Below `next_seq` nothing will be sent again. Without a journal it has no effect.
    ///
    /// Each flush numbers its messages in the order of their types' first use and then of emission, so an IO bee that
    /// emits one type numbers them in the order of emission. What a stateless handler makes of a message is known by the
    /// message: it must be a function of that alone.
    ///
    /// A log remembers the lane until [`Io::retire`]. Only the lower 62 bits of `lane` count.
    pub fn resume(&mut self, lane: u64, next_seq: u64) {
        let Some(link) = &self.hive.inner().link else { return };
        if let Some(unused) = self.line.take() {
            end_unless_lasting(link, &unused)
        }
        let line = link.lanes.resume(lane, next_seq);
        link.quarantine.resumed(line.id(), next_seq);
        self.numbers = Numbers::new(line.id(), next_seq);
        self.line = Some(line)
    }

    /// Says that nothing will ever come on its number line again, so that nobody needs to remember it. Ends the IO bee;
    /// what has not been flushed is dropped.
    pub fn retire(self) {
        if let (Some(link), Some(line)) = (&self.hive.inner().link, &self.line) {
            link.lanes.end(line)
        }
    }

    /// The lowest number on its line that is not known to be done; zero without a journal. Those who go on after a crash
    /// need not remember what is below.
    pub fn floor(&self) -> u64 {
        self.line.as_ref().map_or(0, |line| line.floor())
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Where messages reach this IO bee.
    pub fn address(&self) -> Address {
        Address::Io(self.hive.id(), self.id)
    }

    /// The hive.
    pub fn hive(&self) -> &Hive {
        &self.hive
    }

    /// The hive's time.
    pub fn now(&self) -> Time {
        self.hive.inner().now()
    }

    /// Adds a message to the batch that the next flush hands over. A batch takes
    /// [`limits::EMITS_PER_TRANSACTION_MAX`] messages; more are thrown away, and the flush says so in the log.
    #[inline]
    pub fn emit<M: Message>(&mut self, message: M) {
        self.out.emit(message)
    }

    /// As [`Io::emit`], to one address.
    pub fn send<M: Message>(&mut self, to: Address, message: M) {
        self.out.send(to, message)
    }

    /// Messages in the batch.
    pub fn buffered(&self) -> u32 {
        self.out.len()
    }

    /// Messages that can be handed over now without waiting.
    pub fn credits(&self) -> u32 {
        self.credits.free()
    }

    /// Completes when `wanted` messages can be handed over without waiting. It does not borrow the `Io`, so that it can be
    /// awaited along with other things. Cancel-safe.
    pub fn credits_returned(&self, wanted: u32) -> impl Future<Output = ()> + Send + use<> {
        let credits = self.credits.clone();
        async move { credits.available(wanted).await }
    }

    /// Hands the batch over, in order; waits for credits first. A batch larger than all
    /// credits takes all of them. With a journal it also waits while the oldest message that is not committed is
    /// [`limits::LANE_WINDOW_MAX`](crate::limits::LANE_WINDOW_MAX) numbers behind.
    ///
    /// While it waits, unread mail gives up the credits that it holds. An IO bee that never reads is therefore not locked
    /// out; what comes beyond [`limits::MAIL_UNREAD_MAX`] is thrown away, and counted in
    /// [`Status::mail_shed`](crate::Status::mail_shed).
    ///
    /// When the hive has stopped it throws the batch away instead of waiting.
    ///
    /// Cancel-safe: what has not been handed over stays in the batch.
    pub async fn flush(&mut self) {
        let wanted = self.out.len().min(self.credits.limit());
        if wanted > 0 {
            while !(self.has_room() && self.credits.take_all(wanted)) {
                let ended = self.hive.inner().ended.notified();
                if self.hive.inner().is_over() {
                    self.out.discard();
                    // who goes on all the same must not keep others from going on
                    return tokio::task::yield_now().await;
                }
                self.inbox.release();
                let (next, count) = (self.numbers.seq(), self.out.len() as u64);
                tokio::select! {
                    () = available(self.line.as_deref(), next, count, &self.credits, wanted) => {}
                    () = self.inbox.arrived.notified() => {}
                    () = ended => {}
                }
            }
            self.hand_over(wanted)
        }
    }

    /// Hands the batch over if there are credits for it; otherwise keeps it.
    pub fn try_flush(&mut self) -> Result<(), Busy> {
        let wanted = self.out.len().min(self.credits.limit());
        if wanted > 0 {
            if !(self.has_room() && self.credits.take_all(wanted)) {
                return Err(Busy);
            }
            self.hand_over(wanted);
        }
        Ok(())
    }

    /// Whether the batch keeps within the window of its lane.
    #[inline]
    fn has_room(&self) -> bool {
        let count = self.out.len() as u64;
        self.line.as_ref().is_none_or(|line| line.has_room(self.numbers.seq(), count))
    }

    fn hand_over(&mut self, credits: u32) {
        let count = self.out.len();
        if let Some(why) = self.out.take_overflow() {
            tracing::error!(count, why, "an IO bee emits more than a batch holds; the rest is thrown away");
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
        };
        self.route(source, Some(Cause::new(&self.credits, credits, &self.hive.inner().in_flight)))
    }

    fn route(&mut self, source: Source, cause: Option<Arc<Cause>>) {
        let (out, lane, inbox, numbers) = (&mut self.out, &mut self.lane, &self.inbox, &mut self.numbers);
        let by = self.line.as_ref().map_or(Admission::Inside, Admission::Lane);
        self.chain = self.chain.wrapping_add(out.len() as u64);
        Turn::with(self.hive.inner(), self.place, |turn| {
            turn.cause = cause;
            turn.stateless = Stateless::InOrder;
            out.freeze(source, Some(inbox), numbers, by);
            out.route(u16::MAX, &mut RouteContext::new(lane, turn))
        })
    }

    /// Hands the batch over without credits: for what must not wait behind packets, and comes seldom (a port that went
    /// down, a switch that left).
    pub fn flush_control(&mut self) {
        let source = Source {
            origin: self.hive.id(),
            sender: self.address(),
            bee: None,
            handler: None,
            hops: 0,
            chain: Chain::begun(self.chain),
            numbers: self.numbers,
            chance: self.chance,
        };
        self.route(source, None)
    }

    /// What has come, if anything has.
    pub fn try_receive(&mut self) -> Option<Mail> {
        self.inbox.pop()
    }

    /// Moves everything that has come to the end of `into`.
    pub fn receive_into(&mut self, into: &mut VecDeque<Mail>) {
        self.inbox.append_to(into)
    }

    /// Messages to this IO bee that were thrown away, since it was asked last, because
    /// [`limits::MAIL_UNREAD_MAX`] lay unread. Whoever reads late can so find out that it has missed something, and
    /// ask its senders how things are. Answers are not counted here.
    pub fn take_lost(&mut self) -> u64 {
        // asked after every look at the mail: a load, as long as nothing was lost
        match self.inbox.lost.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.inbox.lost.swap(0, Ordering::Relaxed),
        }
    }

    /// Waits for something to come. Cancel-safe.
    pub async fn receive(&mut self) -> Mail {
        loop {
            let arrived = self.inbox.arrived.notified();
            if let Some(mail) = self.inbox.pop() {
                return mail;
            }
            arrived.await
        }
    }

    /// Completes when there may be mail. Cancel-safe.
    pub async fn arrived(&mut self) {
        if self.inbox.is_empty() {
            self.inbox.arrived.notified().await
        }
    }

    /// Completes when the hive stops: finish what must be finished and return.
    pub async fn stopping(&mut self) {
        self.hive.stopping().await
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        let inner = self.hive.inner();
        inner.io.close(self.id);
        if let (Some(link), Some(line)) = (&inner.link, &self.line) {
            end_unless_lasting(link, line)
        }
    }
}

/// Completes when there may be room for `count` messages from `next` on, and `wanted` credits. Cancel-safe.
async fn available(line: Option<&OutsideLane>, next: u64, count: u64, credits: &Credits, wanted: u32) {
    if let Some(line) = line {
        line.room_for(|| next, count).await
    }
    credits.available(wanted).await
}

/// A lane that nobody can go on with ends with its IO bee.
fn end_unless_lasting(link: &Link, line: &OutsideLane) {
    if !is_lasting(line.id()) {
        link.lanes.end(line)
    }
}
