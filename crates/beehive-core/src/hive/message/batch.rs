//! Batches of messages: their content, their origin, and the requesters that wait for answers.

pub use beehive_protocol::Address;

use crate::cell::{BeeId, HiveId};
use crate::failure::RequestError;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::outside_lanes::{Admitted, Numbers};
use crate::hive::consensus::journal::{AppId, Emit, MessageId, MessageTypeId, Payload};
use crate::hive::links::sent::Requester;
use crate::hive::message::arrival::{Arrival, FromHive};
use crate::hive::message::render;
use crate::key::CellHasher;
use crate::message::Message;
use crate::panics;
use crate::state::image::{DecodeError, decode, try_encode};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// The origin of a batch, shared by all its messages.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The hive where the first message of the causal chain entered from outside.
    pub(crate) origin: HiveId,
    /// The sender.
    pub(crate) sender: Address,
    /// The bee that sent the batch, if a bee did, for the traffic counters. The bee belongs to the app in
    /// `sender`.
    pub(crate) bee: Option<BeeId>,
    /// The handler that sent the batch, if a handler did, for dead letters. The handler belongs to the app in
    /// `sender`.
    pub(crate) handler: Option<u16>,
    /// Number of messages between the first message of the causal chain and this one.
    pub(crate) hops: u16,
    /// The causal chain of the messages.
    pub(crate) chain: Chain,
    /// The sequence numbers of the messages on the sender's lane.
    pub(crate) numbers: Numbers,
    /// Seed of `Ctx::rng` in the handlers.
    pub(crate) chance: u64,
    /// Whether the message comes from the outbox of a log, so that a record must mark it as consumed even if the map drops
    /// it. The program may have another map than the one that sent the message.
    pub(crate) is_logged: bool,
}

/// The causal chain of messages, identified by the outside message that began it.
///
/// Each message of a batch from outside begins its own chain. All messages emitted by one run of transactions
/// continue the chain of the run's first message, because keeping the chains apart would slow down every
/// message. While tracing is on (see [`trace::is_on`](crate::hive::message::trace::is_on)), each run has only
/// one message, so the chain is exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Chain {
    first: u64,
    /// Whether each message of the batch begins its own chain.
    each: bool,
}

impl Chain {
    /// Returns the chains of a batch from outside: one chain for each message, numbered from `first`.
    pub(crate) fn begun(first: u64) -> Chain {
        Chain { first, each: true }
    }

    /// Returns the chain with this number. All messages of the batch continue it.
    pub(crate) fn of(number: u64) -> Chain {
        Chain { first: number, each: false }
    }

    /// Returns the number of the chain of message `index`.
    #[inline(always)]
    pub(crate) fn number(self, index: u32) -> u64 {
        self.first.wrapping_add(if self.each { index as u64 } else { 0 })
    }

    /// Returns the causal chain for messages caused by message `index`.
    #[inline(always)]
    pub(crate) fn after(self, index: u32) -> Chain {
        Chain::of(self.number(index))
    }

    /// Returns the chain of the messages that follow the first `count` messages in the batch.
    pub(crate) fn behind(self, count: usize) -> Chain {
        Chain { first: self.number(count as u32), ..self }
    }
}

/// The difference between the random seeds of consecutive messages.
pub(crate) const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Source {
    /// Returns the origin of messages from outside that are never resent.
    pub(crate) fn outside(origin: HiveId, chance: u64) -> Source {
        Source {
            origin,
            sender: Address::Outside,
            bee: None,
            handler: None,
            hops: 0,
            chain: Chain::begun(chain_from(chance)),
            numbers: Numbers::NONE,
            chance,
            is_logged: false,
        }
    }

    /// Returns the origin of a message that was logged, in this hive or in another one.
    pub(crate) fn again(emit: &Emit) -> Source {
        Source {
            origin: emit.origin,
            sender: emit.sender,
            bee: None,
            handler: None,
            hops: emit.hops,
            chain: Chain::of(emit.chain),
            numbers: Numbers::again(emit.id),
            chance: emit.chance,
            is_logged: false,
        }
    }

    /// Returns the random seed of the message at index `place` of the batch.
    #[inline(always)]
    pub(crate) fn chance_of(&self, place: u64) -> u64 {
        self.chance.wrapping_add(place.wrapping_mul(STRIDE))
    }

    /// Returns the identity of message `index` for one app.
    pub(crate) fn message_id(&self, index: u32, app: u16) -> MessageId {
        self.numbers.id(index, AppId(app))
    }
}

/// Returns the first chain number of a sender outside. The number is a hash of the random seed, so it does
/// not reveal the seed.
pub(crate) fn chain_from(chance: u64) -> u64 {
    CellHasher::new(chance ^ 0x63_68_61_69_6e).finish()
}

/// Messages of one type from one sender. All handlers of the type share the batch.
pub(crate) struct Batch<M: Message> {
    /// The messages. Empty if the batch only refers to a message of another batch (`passed`).
    pub(crate) messages: Vec<M>,
    /// For a message passed on by an app under a new sequence number: the batch that contains the message,
    /// and its index there.
    pub(crate) passed: Option<(Arc<Batch<M>>, u32)>,
    pub(crate) source: Source,
    pub(crate) sink: Option<Arc<dyn AnswerSink<M>>>,
    /// For messages from outside, if there is a journal: the admitted batch, which counts the deliveries
    /// that are not yet committed.
    pub(crate) admitted: Option<Arc<Admitted>>,
    /// For messages from another hive: which bee has to handle them.
    pub(crate) arrival: Option<Arc<Arrival>>,
}

/// If dropping a message panics, the panic must not unwind into the code that happens to hold the last
/// reference to the batch: a bee, a router, or the task that emitted the batch. This logs the panic and still
/// drops the other messages.
impl<M: Message> Drop for Batch<M> {
    fn drop(&mut self) {
        if std::mem::needs_drop::<M>() {
            panics::to_the_end(|| while self.messages.pop().is_some() {})
        }
    }
}

impl<M: Message> Batch<M> {
    /// Creates a batch without a requester.
    pub(crate) fn new(messages: Vec<M>, source: Source) -> Arc<Self> {
        Arc::new(Batch { messages, passed: None, source, sink: None, admitted: None, arrival: None })
    }

    /// Returns message `index`.
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&M> {
        self.all().get(index as usize)
    }

    /// Returns all messages, even if they are in another batch.
    #[inline(always)]
    pub(crate) fn all(&self) -> &[M] {
        match &self.passed {
            None => &self.messages,
            Some((batch, at)) => batch.messages.get(*at as usize).map_or(&[], std::slice::from_ref),
        }
    }

    /// Returns a batch that contains only message `index`, under another sequence number. If `asks`, the requester
    /// stays the same. The message no longer counts as one from outside, because the handler that passes it
    /// on has consumed it under its original number.
    pub(crate) fn pass_on(self: &Arc<Self>, index: u32, numbers: Numbers, asks: bool) -> Arc<Batch<M>> {
        let passed = match &self.passed {
            Some((batch, at)) => (batch.clone(), at.saturating_add(index)),
            None => (self.clone(), index),
        };
        let source = Source {
            numbers,
            chance: self.source.chance_of(u64::from(index)),
            chain: self.source.chain.behind(index as usize),
            is_logged: false,
            ..self.source.clone()
        };
        let sink = self.sink.clone().filter(|_| asks);
        Arc::new(Batch {
            messages: Vec::new(),
            passed: Some(passed),
            source,
            sink,
            admitted: None,
            arrival: None,
        })
    }
}

/// A batch with its message type erased.
pub(crate) trait AnyBatch: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn message_name(&self) -> &'static str;
    /// Returns message `index` as JSON, truncated to `bytes_max` bytes.
    fn words(&self, index: usize, bytes_max: usize) -> String;
    /// Records that another delivery must be committed before the batch is done.
    fn opened(&self);
    /// Records that a delivery to `cells` cells is committed.
    fn committed(&self, cells: usize);
    /// Returns the sequence numbers of the messages on their sender's lane. The visits of a sweep have
    /// none.
    fn numbers(&self) -> Numbers {
        Numbers::NONE
    }
    /// Returns a message as the outbox of the app with this id contains it, for another hive. `None` if there is no such
    /// message, or if it never goes to another hive. Panics if the message cannot be encoded.
    fn emit(&self, _index: u32, _app: AppId, _position: Option<u16>) -> Option<Emit> {
        None
    }
    /// For messages from another hive: which bee has to handle them.
    fn arrival(&self) -> Option<&Arc<Arrival>> {
        None
    }
    /// Returns whoever is waiting for reports about the messages from `first` on.
    fn requester(self: Arc<Self>, _first: u32) -> Option<Arc<dyn Requester>> {
        None
    }
    /// If the messages are visits of a logged sweep, returns that sweep.
    fn sweep(&self) -> Option<MessageId> {
        None
    }
}

impl<M: Message> AnyBatch for Batch<M> {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn message_name(&self) -> &'static str {
        M::NAME
    }
    fn words(&self, index: usize, bytes_max: usize) -> String {
        let message = u32::try_from(index).ok().and_then(|index| self.get(index));
        message
            .and_then(|message| panics::harmless(|| render::bounded::<M>(message, bytes_max)))
            .unwrap_or_default()
    }
    fn opened(&self) {
        if let Some(admitted) = &self.admitted {
            admitted.open()
        }
    }
    fn committed(&self, _: usize) {
        if let Some(admitted) = &self.admitted {
            admitted.close()
        }
    }
    fn numbers(&self) -> Numbers {
        self.source.numbers
    }
    fn emit(&self, index: u32, app: AppId, position: Option<u16>) -> Option<Emit> {
        let payload = self.get(index).map(Payload::of)?;
        let Source { origin, sender, hops, chain, .. } = self.source;
        Some(Emit {
            id: self.source.numbers.id(index, app),
            message_type: const { MessageTypeId::of(M::NAME, None) },
            payload,
            at: None,
            is_sweep: false,
            position,
            origin,
            sender,
            hops,
            chain: chain.number(index),
            chance: self.source.chance_of(u64::from(index)),
        })
    }
    fn arrival(&self) -> Option<&Arc<Arrival>> {
        self.arrival.as_ref()
    }
    fn requester(self: Arc<Self>, first: u32) -> Option<Arc<dyn Requester>> {
        FromHive::of(&self, first)
    }
}

/// Type-erased messages being sent, so that rarely executed code is compiled only once.
pub(crate) trait Messages: AnyBatch {
    fn source(&self) -> &Source;
    fn admitted(&self) -> Option<&Arc<Admitted>>;
    /// Encodes message `index`. Returns `None` if there is no such message. Panics if the message cannot be
    /// encoded.
    fn payload(&self, index: u32) -> Option<Payload>;
    /// Encodes a message. Stops with an error when the message exceeds `bytes_max` bytes. `None` if the batch has no such
    /// message.
    fn try_encoded(&self, index: u32, bytes_max: usize) -> Option<Result<Vec<u8>, String>>;
    /// Decodes a message from a log. The returned batch has the same requester as this batch.
    fn again(&self, emit: &Emit) -> Result<Arc<dyn Messages>, DecodeError>;
}

impl<M: Message> Messages for Batch<M> {
    fn source(&self) -> &Source {
        &self.source
    }
    fn admitted(&self) -> Option<&Arc<Admitted>> {
        self.admitted.as_ref()
    }
    fn payload(&self, index: u32) -> Option<Payload> {
        self.get(index).map(Payload::of)
    }
    fn try_encoded(&self, index: u32, bytes_max: usize) -> Option<Result<Vec<u8>, String>> {
        self.get(index).map(|message| try_encode(message, bytes_max))
    }
    fn again(&self, emit: &Emit) -> Result<Arc<dyn Messages>, DecodeError> {
        let messages = vec![decode::<M>(M::NAME, &emit.payload)?];
        let source = Source { bee: self.source.bee, handler: self.source.handler, ..Source::again(emit) };
        Ok(Arc::new(Batch {
            messages,
            passed: None,
            source,
            sink: self.sink.clone(),
            admitted: None,
            arrival: None,
        }))
    }
}

/// Casts a type-erased batch to its type.
pub(crate) fn batch_of<M: Message>(batch: Arc<dyn Any + Send + Sync>) -> Option<Arc<Batch<M>>> {
    batch.downcast().ok()
}

/// One message's answer.
pub(crate) type Answered<M> = Result<<M as Message>::Reply, RequestError<<M as Message>::Error>>;

/// The outcome of a handler that cannot answer.
pub(crate) type Observed<M> = Result<(), RequestError<<M as Message>::Error>>;

/// The answers of one run. Most runs are short.
pub(crate) type AnswerRun<M> = SmallVec<[Answered<M>; 1]>;

/// The receiver of a batch's answers.
pub(crate) trait AnswerSink<M: Message>: Send + Sync {
    /// Sets the number of handlers that will report on message `index`. `None` if no app handles the type; zero
    /// if the maps of all its handlers drop the message.
    fn expect(&self, batch: &Batch<M>, index: u32, handlers: Option<u32>);
    /// Takes a handler's answers, which do not include messages that the handler passed on.
    fn answers(&self, answers: AnswerRun<M>, cause: &Option<Arc<Cause>>);
    /// Takes the outcome of a handler that cannot answer, once its transaction has committed or failed.
    fn observed(&self, batch: &Batch<M>, index: u32, result: Observed<M>);
    /// Records that the last handler of the answer chain has passed message `index` on, so nobody answers
    /// it.
    fn unanswered(&self, batch: &Batch<M>, index: u32);
    /// Checks whether this receiver needs calls of `expect` and `observed`.
    fn counts(&self) -> bool;
}

/// A shared reference to one message of a batch. Comparing it with a message compares the contents.
pub struct Shared<M: Message> {
    batch: Arc<Batch<M>>,
    index: u32,
}

impl<M: Message> Shared<M> {
    pub(crate) fn of(batch: &Arc<Batch<M>>, index: u32) -> Option<Self> {
        batch.get(index).map(|_| Shared { batch: batch.clone(), index })
    }

    /// Wraps a single message.
    pub fn new(message: M) -> Self {
        Shared { batch: Batch::new(vec![message], Source::outside(HiveId(0), 0)), index: 0 }
    }
}

impl<M: Message> Clone for Shared<M> {
    fn clone(&self) -> Self {
        Shared { batch: self.batch.clone(), index: self.index }
    }
}

impl<M: Message + PartialEq> PartialEq<M> for Shared<M> {
    fn eq(&self, other: &M) -> bool {
        **self == *other
    }
}

impl<M: Message + std::fmt::Debug> std::fmt::Debug for Shared<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl<M: Message> std::ops::Deref for Shared<M> {
    type Target = M;
    fn deref(&self) -> &M {
        // `of` has checked the index, and batches never change
        match &self.batch.passed {
            None => &self.batch.messages[self.index as usize],
            Some((batch, at)) => &batch.messages[(at + self.index) as usize],
        }
    }
}
