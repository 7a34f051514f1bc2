//! Messages on their way: batches, where they come from, and who waits for their answers.

pub use beehive_protocol::Address;

use crate::cell::{BeeId, HiveId};
use crate::hive::admission::credits::Cause;
use crate::hive::admission::outside_lanes::{Admitted, Numbers};
use crate::hive::consensus::journal::{Emit, Fact};
use crate::hive::message::render;
use crate::key::CellHasher;
use crate::message::{Error, Message};
use crate::panics;
use crate::state::image::{DecodeError, decode, encode};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// Where a batch comes from. The same for all messages of a batch, so it is written once for each.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The hive where the chain of messages came in from outside.
    pub(crate) origin: HiveId,
    pub(crate) sender: Address,
    /// The bee that sent it, of the app in `sender`; for the traffic counters.
    pub(crate) bee: Option<BeeId>,
    /// The handler that sent it, of the app in `sender`; for the dead letters.
    pub(crate) handler: Option<u16>,
    /// Messages between the one from outside and this.
    pub(crate) hops: u16,
    /// What began it all.
    pub(crate) chain: Chain,
    /// Where its messages are on the sender's number line.
    pub(crate) numbers: Numbers,
    /// What `Ctx::rng` starts from.
    pub(crate) chance: u64,
}

/// The chain of causes that messages belong to, by the number of the message from outside that began it.
///
/// Messages that come in together begin a chain each. What one run of transactions emits goes on with the chain of the
/// first message of that run: telling them apart would cost something for every message. Where somebody watches (see
/// [`watched`](crate::hive::message::trace)), runs have one message each, and what is said is exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Chain {
    first: u64,
    /// Each message of the batch begins one.
    each: bool,
}

impl Chain {
    /// Messages from outside, each of which begins a chain: the numbers from `first` on.
    pub(crate) fn begun(first: u64) -> Chain {
        Chain { first, each: true }
    }

    /// A chain that goes on.
    pub(crate) fn of(number: u64) -> Chain {
        Chain { first: number, each: false }
    }

    /// The number of the chain of message `index`.
    #[inline(always)]
    pub(crate) fn number(self, index: u32) -> u64 {
        self.first.wrapping_add(if self.each { index as u64 } else { 0 })
    }

    /// The chain goes on with what message `index` causes.
    #[inline(always)]
    pub(crate) fn after(self, index: u32) -> Chain {
        Chain::of(self.number(index))
    }

    /// That of messages that come in together with `count` others, which stand before them.
    pub(crate) fn behind(self, count: usize) -> Chain {
        Chain { first: self.number(count as u32), ..self }
    }
}

/// Between the chances of neighbours.
pub(crate) const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Source {
    /// Of something that comes from outside and is not sent again.
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
        }
    }

    /// Of a message that a log remembers.
    pub(crate) fn again(emit: &Emit) -> Source {
        Source {
            origin: emit.origin,
            sender: emit.sender,
            bee: None,
            handler: None,
            hops: emit.hops,
            chain: Chain::of(emit.chain),
            numbers: Numbers::again(emit.fact),
            chance: emit.chance,
        }
    }

    /// What chance is derived from for the message at `place`.
    #[inline(always)]
    pub(crate) fn chance_of(&self, place: u64) -> u64 {
        self.chance.wrapping_add(place.wrapping_mul(STRIDE))
    }

    /// What identifies message `index` of a batch for one app.
    pub(crate) fn fact(&self, index: u32, app: u16) -> Fact {
        self.numbers.fact(index, app)
    }
}

/// The first number of the chains of somebody outside whose chance starts from `chance`, which it must not give away.
pub(crate) fn chain_from(chance: u64) -> u64 {
    CellHasher::new(chance ^ 0x63_68_61_69_6e).finish()
}

/// Messages of one type from one sender. Shared by all that handle them.
pub(crate) struct Batch<M: Message> {
    pub(crate) messages: Vec<M>,
    pub(crate) source: Source,
    pub(crate) sink: Option<Arc<dyn AnswerSink<M>>>,
    /// From outside: to be told what of it is committed.
    pub(crate) admitted: Option<Arc<Admitted>>,
}

impl<M: Message> Batch<M> {
    /// Messages that nobody waits for.
    pub(crate) fn new(messages: Vec<M>, source: Source) -> Arc<Self> {
        Arc::new(Batch { messages, source, sink: None, admitted: None })
    }
}

/// A batch whose type is not known here.
pub(crate) trait AnyBatch: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn message_name(&self) -> &'static str;
    /// Message `index` in words, so many bytes of them at most.
    fn words(&self, index: usize, bytes_max: usize) -> String;
    /// Another delivery of it has to be committed.
    fn opened(&self);
    /// A delivery of it is committed, which had its turn for so many cells.
    fn committed(&self, cells: usize);
}

impl<M: Message> AnyBatch for Batch<M> {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn message_name(&self) -> &'static str {
        M::NAME
    }
    fn words(&self, index: usize, bytes_max: usize) -> String {
        let message = self.messages.get(index);
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
}

/// Messages that are sent, whose type is not known here. What is seldom done with them is compiled once, and not for each.
pub(crate) trait Messages: AnyBatch {
    fn source(&self) -> &Source;
    fn admitted(&self) -> Option<&Arc<Admitted>>;
    /// Message `index`, encoded, if there is one. Panics where it cannot be.
    fn encoded(&self, index: u32) -> Option<Vec<u8>>;
    /// A message that a log remembers, for those who wait for the answers to these.
    fn again(&self, emit: &Emit) -> Result<Arc<dyn Messages>, DecodeError>;
}

impl<M: Message> Messages for Batch<M> {
    fn source(&self) -> &Source {
        &self.source
    }
    fn admitted(&self) -> Option<&Arc<Admitted>> {
        self.admitted.as_ref()
    }
    fn encoded(&self, index: u32) -> Option<Vec<u8>> {
        self.messages.get(index as usize).map(encode)
    }
    fn again(&self, emit: &Emit) -> Result<Arc<dyn Messages>, DecodeError> {
        let messages = vec![decode::<M>(M::NAME, &emit.bytes)?];
        let source = Source { bee: self.source.bee, handler: self.source.handler, ..Source::again(emit) };
        Ok(Arc::new(Batch { messages, source, sink: self.sink.clone(), admitted: None }))
    }
}

/// A batch whose type was not known.
pub(crate) fn batch_of<M: Message>(batch: Arc<dyn Any + Send + Sync>) -> Option<Arc<Batch<M>>> {
    batch.downcast().ok()
}

/// The answers of one run; most runs are short.
pub(crate) type AnswerRun<M> = SmallVec<[Result<<M as Message>::Reply, Error>; 1]>;

/// Somebody who waits for the answers to a batch.
pub(crate) trait AnswerSink<M: Message>: Send + Sync {
    /// How many handlers will report on message `index`; zero: nobody handles it.
    fn expect(&self, batch: &Batch<M>, index: u32, handlers: u32);
    /// Answers of a handler that can answer; what it returned nothing for has been passed on.
    fn answers(&self, answers: AnswerRun<M>, cause: &Option<Arc<Cause>>);
    /// A handler that answers nothing has committed, or failed.
    fn observed(&self, batch: &Batch<M>, index: u32, result: Result<(), Error>);
    /// The last handler of the chain passed message `index` on.
    fn unanswered(&self, batch: &Batch<M>, index: u32);
    /// Whether `expect` and `observed` are of interest.
    fn counts(&self) -> bool;
}

/// One message of a batch, shared. Equal to a message with the same content.
pub struct Shared<M: Message> {
    batch: Arc<Batch<M>>,
    index: u32,
}

impl<M: Message> Shared<M> {
    pub(crate) fn of(batch: &Arc<Batch<M>>, index: u32) -> Option<Self> {
        ((index as usize) < batch.messages.len()).then(|| Shared { batch: batch.clone(), index })
    }

    /// A message by itself.
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
        // checked when it was made, and batches do not change
        &self.batch.messages[self.index as usize]
    }
}
