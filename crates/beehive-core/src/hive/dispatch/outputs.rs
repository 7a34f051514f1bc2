//! The outputs of transactions: the emitted messages with their types, in order of emission, stored without a
//! separate allocation for each.
//!
//! A transaction pushes its messages into slots, one per message type. Spans record the order of the
//! messages. After the run, `freeze` turns each slot into a batch, and `route` sends the spans in order.

use crate::hive::admission::outside_lanes::{Admission, Admitted, Numbers};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::types::message_types::{MessageType, Types};
use crate::hive::message::batch::{Address, Batch, Source};
use crate::hive::message::inbox::Inbox;
use crate::message::Message;
use crate::time::Time;
use crate::{limits, panics};
use std::any::{Any, TypeId};
use std::ops::Range;
use std::sync::Arc;

/// Number of messages that a transaction may emit.
const EMITS_MAX: u32 = limits::EMITS_PER_TRANSACTION_MAX as u32;

/// Error of a transaction that emitted too many messages.
const TOO_MANY_EMITS: &str = "the transaction emitted more messages than `limits::EMITS_PER_TRANSACTION_MAX`";
/// Error of a transaction that set a timer when too many were already waiting.
const TOO_MANY_TIMERS: &str = "more timers are waiting than `limits::TIMERS_WAITING_MAX`";

/// Error of a transaction that emitted a message although the causal chain of its own message is as long as
/// allowed.
pub(crate) const CHAIN_TOO_LONG: &str = "the message is the last one that `limits::HOPS_PER_CAUSE_MAX` allows in its chain, so its handler cannot emit; \
     the messages of the chain probably form a cycle";

/// The target of an emitted message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// Every app that handles the type.
    All,
    /// A single app or IO bee.
    One(Address),
    /// The emitting app, at the given time.
    Later(Time),
}

/// A message emitted by a transaction, as a probe sees it.
#[cfg(feature = "testing")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) name: &'static str,
    pub(crate) to: Target,
    pub(crate) bytes: Vec<u8>,
}

/// Consecutively emitted messages with the same type and target.
#[derive(Clone, Copy)]
struct Span {
    /// Index in `Outputs::slots`.
    slot: u16,
    target: Target,
    /// Index of the first message in its slot.
    first: u32,
    count: u32,
}

impl Span {
    fn range(&self) -> Range<u32> {
        self.first..self.first + self.count
    }
}

impl Target {
    /// Adds the emitting app `app` to the target. Timers send their messages to it.
    fn routed(self, app: u16) -> Routed {
        match self {
            Target::All => Routed::All,
            Target::One(to) => Routed::One(to),
            Target::Later(at) => Routed::Later { at, app },
        }
    }
}

/// The emitted messages of one type, with the type erased.
trait Slot: Send {
    /// Returns the `Typed<M>`, to be downcast.
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// Drops the messages at index `len` and above.
    fn truncate(&mut self, len: u32);
    /// Turns the messages, if any are left, into a batch. Uses `next` as the batch's source, and then
    /// advances `next` to the source of the next batch.
    fn freeze(&mut self, next: &mut Source, sink: Option<&Arc<Inbox>>, numbers: &mut Numbers, by: Admission);
    /// Routes a span of the frozen batch.
    fn route(&self, span: Range<u32>, target: Routed, cx: &mut RouteContext);
    /// Releases the batch after routing so that the slot can be reused.
    fn thaw(&mut self);
    /// Returns the name of the message type.
    fn name(&self) -> &'static str;
    /// Encodes the messages in `range`, which are not yet frozen into a batch. Returns each with its type
    /// name.
    #[cfg(feature = "testing")]
    fn encoded(&self, range: Range<u32>) -> Vec<(&'static str, Vec<u8>)>;
}

/// A target together with the emitting app.
#[derive(Clone, Copy)]
enum Routed {
    All,
    One(Address),
    Later { at: Time, app: u16 },
}

/// The slot of message type `M`.
struct Typed<M: Message> {
    kind: Arc<MessageType<M>>,
    /// Whether timers send these messages.
    later: bool,
    /// The messages that are not yet frozen.
    messages: Vec<M>,
    /// Length of the last batch. The next batch's buffer is allocated with this capacity, so it rarely has to
    /// grow.
    usual: usize,
    /// The frozen messages while they are routed.
    batch: Option<Arc<Batch<M>>>,
    /// Whether `freeze` admitted the batch on a lane. If so, `thaw` must close it.
    admitted: bool,
    /// If a stateless handler set the timers, the admitted batch for which it ran. That batch stays open
    /// until a record contains the timers.
    part_of: Option<Arc<Admitted>>,
}

impl<M: Message> Slot for Typed<M> {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn truncate(&mut self, len: u32) {
        while std::mem::needs_drop::<M>() && self.messages.len() > len as usize {
            // drop the messages one by one and catch panics: if dropping one message panics, the others
            // must still be dropped
            panics::harmless(|| drop(self.messages.pop()));
        }
        self.messages.truncate(len as usize)
    }

    fn freeze(&mut self, next: &mut Source, sink: Option<&Arc<Inbox>>, numbers: &mut Numbers, by: Admission) {
        if !self.messages.is_empty() {
            let sink = sink.map(|inbox| inbox.clone() as _);
            let messages = std::mem::take(&mut self.messages);

            self.usual = messages.len();

            let mut source = next.clone();
            next.chain = next.chain.behind(messages.len());
            next.chance = next.chance_of(messages.len() as u64);
            source.numbers = numbers.take(messages.len());

            self.admitted = matches!(by, Admission::Lane(_));
            let admitted = match by {
                Admission::Inside => None,
                Admission::Part(of) if self.later => {
                    self.part_of = Some(of.clone());
                    None
                }
                Admission::Lane(lane) => Some(lane.admit(source.numbers.seq(), messages.len())),
                Admission::Part(of) => Some(of.clone()),
            };

            if self.later {
                source.hops = 0;
            }

            self.batch =
                Some(Arc::new(Batch { messages, passed: None, source, sink, admitted, arrival: None }));
        }
    }

    fn route(&self, span: Range<u32>, target: Routed, cx: &mut RouteContext) {
        let Some(batch) = &self.batch else { return };
        match target {
            Routed::All => self.kind.route(batch, span, cx),
            Routed::One(to) => self.kind.send(batch, span, to, cx),
            Routed::Later { at, app } => {
                self.kind.send_later(batch, span, at, app, self.part_of.as_ref(), cx)
            }
        }
    }

    fn thaw(&mut self) {
        self.part_of = None;
        if let Some(batch) = self.batch.take()
            && std::mem::take(&mut self.admitted)
            && let Some(admitted) = &batch.admitted
        {
            // the whole batch has been routed
            admitted.close()
        }
    }

    fn name(&self) -> &'static str {
        M::NAME
    }

    #[cfg(feature = "testing")]
    fn encoded(&self, range: Range<u32>) -> Vec<(&'static str, Vec<u8>)> {
        let messages = self.messages.get(range.start as usize..range.end as usize).unwrap_or_default();
        // a message that cannot be encoded fails later, in its own transaction or record
        let bytes = |message: &M| {
            panics::catch(std::panic::AssertUnwindSafe(|| crate::state::image::encode(message)))
                .unwrap_or_default()
        };

        messages.iter().map(|message| (M::NAME, bytes(message))).collect()
    }
}

/// A point to which the outputs can be rolled back.
#[derive(Clone, Copy, Default)]
pub(crate) struct Savepoint {
    /// Number of spans.
    spans: u32,
    /// Number of messages in the last span, which may still grow.
    last_count: u32,
    /// Number of messages.
    total: u32,
    /// Number of timers.
    later: u32,
}

/// The messages emitted so far by the transactions of a run.
pub(crate) struct Outputs {
    types: Arc<Types>,
    /// The slots, by message type and by whether timers send the messages. Messages sent by timers need
    /// separate slots, because their hop counts restart at zero.
    slots: Vec<((TypeId, bool), Box<dyn Slot>)>,
    /// The spans, in order of emission.
    spans: Vec<Span>,
    /// Number of messages in all spans.
    total: u32,
    /// Number of timers set by the run so far.
    later: u32,
    /// Number of messages that each transaction of the run may emit. Zero if the run's messages are the last ones of
    /// their causal chains: handlers may then set timers, but not emit.
    allowed: u32,
    /// The value of `total` at which the current transaction has emitted all that is `allowed`.
    end: u32,
    /// The limit that the current transaction has exceeded; `None` if it is within all limits.
    overflown: Option<&'static str>,
}

impl Outputs {
    pub(crate) fn new(types: Arc<Types>) -> Outputs {
        Outputs {
            types,
            slots: Vec::new(),
            spans: Vec::new(),
            total: 0,
            later: 0,
            allowed: EMITS_MAX,
            end: EMITS_MAX,
            overflown: None,
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the number of messages.
    pub(crate) fn len(&self) -> u32 {
        self.total
    }

    /// Begins a run of messages with this hop count. At the hop limit, handlers may still set timers, because timers do
    /// not continue a causal chain.
    #[inline(always)]
    pub(crate) fn begin(&mut self, hops: u16) {
        self.allowed = if hops < limits::HOPS_PER_CAUSE_MAX { EMITS_MAX } else { 0 }
    }

    /// Begins a transaction and returns its savepoint.
    #[inline(always)]
    pub(crate) fn mark(&mut self) -> Savepoint {
        self.end = self.total + self.allowed;
        self.savepoint()
    }

    /// Returns a savepoint of the current outputs without beginning a transaction.
    #[inline(always)]
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint {
            spans: self.spans.len() as u32,
            last_count: self.spans.last().map_or(0, |s| s.count),
            total: self.total,
            later: self.later,
        }
    }

    /// Checks whether the transaction has exceeded a limit.
    #[inline(always)]
    pub(crate) fn is_overflown(&self) -> bool {
        self.overflown.is_some()
    }

    /// Returns the limit exceeded by the transaction, if any, and clears it.
    #[cold]
    pub(crate) fn take_overflow(&mut self) -> Option<&'static str> {
        self.overflown.take()
    }

    /// Drops the messages emitted after the savepoint `mark`.
    #[cold]
    pub(crate) fn rollback(&mut self, mark: Savepoint) {
        while self.spans.len() as u32 > mark.spans {
            if let Some(span) = self.spans.pop()
                && let Some((_, slot)) = self.slots.get_mut(span.slot as usize)
            {
                slot.truncate(span.first)
            }
        }

        if let Some(last) = self.spans.last_mut()
            && last.count > mark.last_count
        {
            last.count = mark.last_count;
            let end = last.first + last.count;
            if let Some((_, slot)) = self.slots.get_mut(last.slot as usize) {
                slot.truncate(end)
            }
        }

        self.total = mark.total;
        self.later = mark.later;
    }

    /// Emits a message to every app that handles it.
    #[inline]
    pub(crate) fn emit<M: Message>(&mut self, message: M) {
        self.push(Target::All, message)
    }

    /// Sends a message to a single app or IO bee.
    #[inline]
    pub(crate) fn send<M: Message>(&mut self, to: Address, message: M) {
        self.push(Target::One(to), message)
    }

    /// Sends a message to the emitting app at time `at`.
    pub(crate) fn after<M: Message>(&mut self, at: Time, message: M) {
        self.push(Target::Later(at), message)
    }

    /// Counts one more timer. If the limit on waiting timers is reached, returns `false`, and the
    /// transaction will fail.
    pub(crate) fn take_timer(&mut self) -> bool {
        let may = self.types.timers.free() > self.later;

        match may {
            true => self.later += 1,
            false => self.overflown = Some(TOO_MANY_TIMERS),
        }
        may
    }

    /// Adds a message. If that would exceed a limit, drops the message instead, and the transaction will
    /// fail.
    #[inline]
    fn push<M: Message>(&mut self, target: Target, message: M) {
        let later = matches!(target, Target::Later(_));
        if self.total >= self.end && !self.may_exceed(later) {
            return;
        }
        if later && !self.take_timer() {
            return;
        }

        let wanted = (TypeId::of::<M>(), later);
        let at = match self.slots.iter().position(|(id, _)| *id == wanted) {
            Some(at) => at,
            None => match self.new_slot::<M>(later) {
                Some(at) => at,
                None => return,
            },
        };

        let Some(slot) = self.slots[at].1.as_any_mut().downcast_mut::<Typed<M>>() else { return };

        let first = slot.messages.len() as u32;
        if first == 0 {
            slot.messages.reserve(slot.usual)
        }

        slot.messages.push(message);
        self.total += 1;

        match self.spans.last_mut() {
            Some(span)
                if span.slot as usize == at && span.target == target && span.first + span.count == first =>
            {
                span.count += 1
            }
            _ => self.spans.push(Span { slot: at as u16, target, first, count: 1 }),
        }
    }

    /// Checks whether a transaction that has reached `end` may add another message. If fewer than `EMITS_MAX`
    /// messages have been emitted, the causal chain ends here, and the transaction may still set timers. Otherwise it
    /// will fail.
    #[cold]
    fn may_exceed(&mut self, later: bool) -> bool {
        let emitted = self.total + self.allowed - self.end;
        if emitted < EMITS_MAX && later {
            return true;
        }

        self.overflown = Some(if emitted < EMITS_MAX { CHAIN_TOO_LONG } else { TOO_MANY_EMITS });
        false
    }

    /// Adds a slot for type `M`. Returns `None` if there are already as many slots as a `u16` can number.
    #[cold]
    fn new_slot<M: Message>(&mut self, later: bool) -> Option<usize> {
        let kind = self.types.kind::<M>();

        if self.slots.len() > u16::MAX as usize {
            return None;
        }

        self.slots.push((
            (TypeId::of::<M>(), later),
            Box::new(Typed {
                kind,
                later,
                messages: Vec::new(),
                usual: 0,
                batch: None,
                admitted: false,
                part_of: None,
            }),
        ));

        Some(self.slots.len() - 1)
    }

    /// Turns the emitted messages into batches and assigns them the next sequence numbers from `numbers`.
    ///
    /// The numbers must be deterministic: the same outputs must always get the same numbers. Slots are
    /// therefore frozen in order of emission, not in their order in `slots`, which depends on which types
    /// this thread happened to emit first.
    pub(crate) fn freeze(
        &mut self,
        mut source: Source,
        sink: Option<&Arc<Inbox>>,
        numbers: &mut Numbers,
        by: Admission,
    ) {
        for span in &self.spans {
            if let Some((_, slot)) = self.slots.get_mut(span.slot as usize) {
                slot.freeze(&mut source, sink, numbers, by)
            }
        }
    }

    /// Routes the frozen messages in order. `app` is the app that emitted them.
    pub(crate) fn route(&mut self, app: u16, cx: &mut RouteContext) {
        for span in &self.spans {
            if let Some((_, slot)) = self.slots.get(span.slot as usize) {
                slot.route(span.range(), span.target.routed(app), cx)
            }
        }

        for span in self.spans.drain(..) {
            if let Some((_, slot)) = self.slots.get_mut(span.slot as usize) {
                slot.thaw()
            }
        }

        self.total = 0;
        self.later = 0;
        self.end = self.allowed;
    }

    /// Returns the type name and the number of messages of each span, for the counters of emitted messages.
    pub(crate) fn summary(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.spans.iter().filter_map(|s| Some((self.slots.get(s.slot as usize)?.1.name(), s.count)))
    }

    /// Returns the messages emitted after the savepoint `mark`, in order.
    #[cfg(feature = "testing")]
    #[cold]
    pub(crate) fn sent_since(&self, mark: Savepoint) -> Vec<Sent> {
        let before = mark.spans as usize;
        let spans = self.spans.iter().enumerate().skip(before.saturating_sub(1)).filter_map(|(at, span)| {
            let known = if at + 1 == before { mark.last_count } else { 0 };
            (at >= before || span.count > known).then(|| (span, span.first + known..span.first + span.count))
        });

        let encoded = spans.flat_map(|(span, range)| {
            let slot = self.slots.get(span.slot as usize).map(|(_, slot)| slot);
            let sent = move |(name, bytes)| Sent { name, to: span.target, bytes };
            slot.into_iter().flat_map(move |slot| slot.encoded(range.clone())).map(sent)
        });

        encoded.collect()
    }

    /// Drops all messages.
    pub(crate) fn discard(&mut self) {
        self.rollback(Savepoint::default());
        self.end = self.allowed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::message::inbox::IoBees;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Note(u64);
    impl Message for Note {
        type Reply = ();
        type Error = crate::Error;
        const NAME: &'static str = "note";
    }

    fn sent(out: &Outputs, mark: Savepoint) -> Vec<u64> {
        out.sent_since(mark).iter().map(|sent| sent.bytes.first().copied().unwrap_or(0).into()).collect()
    }

    #[test]
    fn what_is_undone_is_neither_sent_nor_counted() {
        let mut out = Outputs::new(Types::new(Arc::new(IoBees::default())));
        out.emit(Note(1));
        out.after(Time::ZERO, Note(2));
        out.after(Time::ZERO, Note(3));
        let mark = out.mark();
        out.after(Time::ZERO, Note(4));
        out.emit(Note(5));
        out.send(Address::Outside, Note(6));
        assert!(out.take_timer());
        assert_eq!((sent(&out, mark), out.len(), out.later), (vec![4, 5, 6], 6, 4));
        out.rollback(mark);
        assert_eq!((sent(&out, mark), out.len(), out.later), (vec![], 3, 2));
        out.after(Time::ZERO, Note(7));
        assert_eq!((sent(&out, mark), sent(&out, Savepoint::default())), (vec![7], vec![1, 2, 3, 7]));
        out.discard();
        assert_eq!((out.len(), out.later, out.is_empty()), (0, 0, true));
    }
}
