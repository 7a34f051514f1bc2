//! IO bees: supervised tasks that own sockets, timers and other things outside. They never migrate.
//!
//! An IO bee emits batches under credits: a message from outside holds a credit until everything it caused is done, so
//! an IO bee that is ahead of the hive waits, or sheds, and memory stays flat. What apps send to its address, and the
//! answers to what it emitted, come back as [`Mail`].

use crate::hash::HashMap;
use crate::hive::admission::credits::{Cause, Credits};
use crate::hive::admission::deferred_wakes;
use crate::hive::admission::outside_lanes::{Admission, Numbers, OutsideLane, is_lasting};
use crate::hive::dispatch::outputs::Outputs;
use crate::hive::dispatch::sender_queue::SenderLane;
use crate::hive::dispatch::turn::{Place, Stateless, Turn};
use crate::hive::log::log_client::Link;
use crate::hive::message::batch::{AnswerRun, AnswerSink, AnyBatch, Batch, Chain, Source, chain_from};
use crate::hive::{Address, Hive};
use crate::limits;
use crate::message::{Error, Message};
use crate::time::Time;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Something that came to an IO bee: messages sent to its address, or answers to what it emitted.
pub struct Mail {
    content: Content,
    /// Held until the mail has been looked at.
    cause: Option<Arc<Cause>>,
}

enum Content {
    Messages {
        batch: Arc<dyn AnyBatch>,
        range: Range<u32>,
    },
    /// With their number.
    Answers(Box<dyn Any + Send>, usize),
}

/// Answers to messages of type `M`; those of one bee in the order in which it handled them. What nobody answered is not
/// there.
pub struct Answers<M: Message>(Vec<Result<M::Reply, Error>>);

impl<M: Message> IntoIterator for Answers<M> {
    type Item = Result<M::Reply, Error>;
    type IntoIter = std::vec::IntoIter<Result<M::Reply, Error>>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Mail {
    /// The messages, if they are of type `M`.
    pub fn messages<M: Message>(&self) -> Option<&[M]> {
        match &self.content {
            Content::Messages { batch, range } => {
                let batch = batch.as_any().downcast_ref::<Batch<M>>()?;
                batch.messages.get(range.start as usize..range.end as usize)
            }
            Content::Answers(..) => None,
        }
    }

    /// The answers, if they are to messages of type `M`.
    pub fn into_answers<M: Message>(self) -> Result<Answers<M>, Mail> {
        match self.content {
            Content::Answers(answers, count) => answers
                .downcast::<Answers<M>>()
                .map(|a| *a)
                .map_err(|a| Mail { content: Content::Answers(a, count), cause: self.cause }),
            content => Err(Mail { content, cause: self.cause }),
        }
    }

    /// Name of the message's type; for answers, none.
    pub fn name(&self) -> Option<&'static str> {
        match &self.content {
            Content::Messages { batch, .. } => Some(batch.message_name()),
            Content::Answers(..) => None,
        }
    }

    /// Messages or answers in it.
    fn len(&self) -> usize {
        match &self.content {
            Content::Messages { range, .. } => range.len(),
            Content::Answers(_, count) => *count,
        }
    }
}

/// What waits for one IO bee.
///
/// Mail holds the credits of those who caused it, which bounds it as long as its owner reads; what came without credits,
/// or had to give them up, is bounded by [`limits::MAIL_UNREAD_MAX`].
pub(crate) struct Inbox {
    unread: Mutex<Unread>,
    arrived: Arc<Notify>,
    shed: Arc<Shed>,
    /// Messages that were thrown away since somebody asked.
    lost: AtomicU64,
}

/// Messages and answers that were thrown away because their IO bee reads nothing, of all IO bees of a hive.
#[derive(Default)]
pub(crate) struct Shed(AtomicU64);

impl Shed {
    #[cold]
    fn add(&self, count: usize) {
        let before = self.0.fetch_add(count as u64, Ordering::Relaxed);
        // once for every doubling: who floods an IO bee must not flood the log
        if before == 0 || (before + count as u64).ilog2() > before.ilog2() {
            tracing::warn!(
                shed = before + count as u64,
                "an IO bee does not read its mail; what comes is thrown away"
            );
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Unread {
    mail: VecDeque<Mail>,
    /// Messages and answers in it.
    count: usize,
    /// So many letters from the front on have given their credits up.
    released: usize,
}

impl Unread {
    /// Counts `count` more, if there is room for them.
    #[inline]
    fn admit(&mut self, count: usize) -> bool {
        let room = count <= self.room();
        self.count += if room { count } else { 0 };
        room
    }

    #[inline]
    fn room(&self) -> usize {
        limits::MAIL_UNREAD_MAX - self.count
    }

    fn pop(&mut self) -> Option<Mail> {
        let mail = self.mail.pop_front()?;
        self.count -= mail.len();
        self.released = self.released.saturating_sub(1);
        Some(mail)
    }

    fn append_to(&mut self, into: &mut VecDeque<Mail>) {
        into.append(&mut self.mail);
        (self.count, self.released) = (0, 0)
    }
}

impl Inbox {
    /// Puts messages in; as many as there is room for, in order.
    fn put(&self, batch: Arc<dyn AnyBatch>, mut range: Range<u32>, cause: Option<Arc<Cause>>) {
        let mut unread = self.unread.lock();
        let lost = range.len().saturating_sub(unread.room());
        if lost > 0 {
            self.lost.fetch_add(lost as u64, Ordering::Relaxed);
            // no more than the range is long
            range.end -= lost as u32;
            self.shed.add(lost);
            if range.is_empty() {
                return;
            }
        }
        unread.admit(range.len());
        self.push(unread, Mail { content: Content::Messages { batch, range }, cause })
    }

    fn push(&self, mut unread: MutexGuard<'_, Unread>, mail: Mail) {
        unread.mail.push_back(mail);
        // also the first behind those that have no credits any more: whoever waits for credits may wait for this one's
        let first = unread.mail.len() == unread.released + 1;
        drop(unread);
        if first {
            deferred_wakes::one(&self.arrived)
        }
    }

    /// Has all mail give up its credits: they may be what its reader is waiting for.
    fn release(&self) {
        let mut causes: Vec<Arc<Cause>> = Vec::new();
        let mut unread = self.unread.lock();
        let Unread { mail, released, .. } = &mut *unread;
        causes.extend(mail.iter_mut().skip(*released).filter_map(|one| one.cause.take()));
        *released = mail.len();
        drop(unread);
        // outside the lock: it wakes others
        drop(causes)
    }
}

impl<M: Message> AnswerSink<M> for Inbox {
    fn expect(&self, _: &Batch<M>, _: u32, _: u32) {}

    fn answers(&self, answers: AnswerRun<M>, cause: &Option<Arc<Cause>>) {
        let mut unread = self.unread.lock();
        if !unread.admit(answers.len()) {
            drop(unread);
            return self.shed.add(answers.len());
        }
        // answers to one batch come one bee after the other: they go into one letter
        if let Some(Mail { content: Content::Answers(before, count), cause: held }) = unread.mail.back_mut()
            && held.as_ref().map(Arc::as_ptr) == cause.as_ref().map(Arc::as_ptr)
            && let Some(before) = before.downcast_mut::<Answers<M>>()
        {
            *count += answers.len();
            before.0.extend(answers);
            return;
        }
        let count = answers.len();
        let content = Content::Answers(Box::new(Answers::<M>(answers.into_vec())), count);
        self.push(unread, Mail { content, cause: cause.clone() })
    }

    fn observed(&self, _: &Batch<M>, _: u32, _: Result<(), Error>) {}

    fn unanswered(&self, _: &Batch<M>, _: u32) {}

    fn counts(&self) -> bool {
        false
    }
}

/// The IO bees of a hive, by number.
#[derive(Default)]
pub(crate) struct IoBees {
    next: AtomicU64,
    inboxes: RwLock<HashMap<u64, Arc<Inbox>>>,
    /// Of those that the hive supervises: who lives under which name.
    names: RwLock<HashMap<String, u64>>,
    pub(crate) shed: Arc<Shed>,
}

impl IoBees {
    /// With numbers from `first` on. It differs from one life of a hive to the next: an address that a log has kept must
    /// not lead to another IO bee.
    pub(crate) fn numbered_from(first: u64) -> IoBees {
        IoBees { next: AtomicU64::new(first), ..IoBees::default() }
    }

    fn open(&self) -> (u64, Arc<Inbox>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let inbox = Arc::new(Inbox {
            unread: Mutex::default(),
            arrived: Arc::default(),
            shed: self.shed.clone(),
            lost: AtomicU64::new(0),
        });
        self.inboxes.write().insert(id, inbox.clone());
        (id, inbox)
    }

    fn close(&self, id: u64) {
        self.inboxes.write().remove(&id);
    }

    /// The one that was started last under a name, if it lives.
    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        self.names.read().get(name).copied()
    }

    /// A life of a supervised IO bee begins.
    pub(crate) fn begin(&self, name: &str, id: u64) {
        self.names.write().insert(name.to_string(), id);
    }

    /// It ends.
    pub(crate) fn end(&self, name: &str, id: u64) {
        let mut names = self.names.write();
        if names.get(name) == Some(&id) {
            names.remove(name);
        }
    }

    pub(crate) fn deliver<M: Message>(
        &self,
        id: u64,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        cause: &Option<Arc<Cause>>,
    ) {
        // an IO bee that is gone has no use for it
        let Some(inbox) = self.inboxes.read().get(&id).cloned() else { return };
        inbox.put(batch.clone(), range, cause.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.inboxes.read().len()
    }
}

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
    lane: SenderLane,
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
            lane: SenderLane::default(),
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
        link.care.resumed(line.id(), next_seq);
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
        self.route(source, Some(Cause::new(&self.credits, credits, &self.hive.inner().under_way)))
    }

    fn route(&mut self, source: Source, cause: Option<Arc<Cause>>) {
        let (out, lane, inbox, numbers) = (&mut self.out, &mut self.lane, &self.inbox, &mut self.numbers);
        let by = self.line.as_ref().map_or(Admission::Inside, Admission::Lane);
        self.chain = self.chain.wrapping_add(out.len() as u64);
        Turn::with(self.hive.inner(), self.place, |turn| {
            turn.cause = cause;
            turn.stateless = Stateless::InOrder;
            out.freeze(source, Some(inbox), numbers, by);
            out.route(u16::MAX, lane, turn)
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
        self.inbox.unread.lock().pop()
    }

    /// Moves everything that has come to the end of `into`.
    pub fn receive_into(&mut self, into: &mut VecDeque<Mail>) {
        self.inbox.unread.lock().append_to(into)
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
            if let Some(mail) = self.inbox.unread.lock().pop() {
                return mail;
            }
            arrived.await
        }
    }

    /// Completes when there may be mail. Cancel-safe.
    pub async fn arrived(&mut self) {
        if self.inbox.unread.lock().mail.is_empty() {
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
