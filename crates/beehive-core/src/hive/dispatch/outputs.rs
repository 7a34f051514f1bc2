//! What transactions emit, in order, typed and without an allocation per message.

use crate::hive::admission::outside_lanes::{Admission, Admitted, Numbers};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::message_types::{MessageType, Types};
use crate::hive::message::batch::{Address, Batch, Source};
use crate::hive::message::inbox::Inbox;
use crate::message::Message;
use crate::time::Time;
use crate::{limits, panics};
use std::any::{Any, TypeId};
use std::ops::Range;
use std::sync::Arc;

const TOO_MANY_EMITS: &str = "the transaction emitted more messages than `limits::EMITS_PER_TRANSACTION_MAX`";
const TOO_MANY_TIMERS: &str = "more timers are waiting than `limits::TIMERS_WAITING_MAX`";

/// Where a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// Every app that handles it.
    All,
    One(Address),
    /// The emitting app, at a time.
    Later(Time),
}

/// A message that a transaction emitted, for a probe.
#[cfg(feature = "testing")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) name: &'static str,
    pub(crate) to: Target,
    pub(crate) bytes: Vec<u8>,
}

/// Messages of one type that stand next to each other in the order of emission.
#[derive(Clone, Copy)]
struct Span {
    slot: u16,
    target: Target,
    first: u32,
    count: u32,
}

impl Span {
    fn range(&self) -> Range<u32> {
        self.first..self.first + self.count
    }
}

impl Target {
    fn routed(self, app: u16) -> Routed {
        match self {
            Target::All => Routed::All,
            Target::One(to) => Routed::One(to),
            Target::Later(at) => Routed::Later { at, app },
        }
    }
}

/// The messages of one type.
trait Slot: Send {
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn truncate(&mut self, len: u32);
    /// Makes a batch of what was emitted; called before the spans are routed. `next`: where it comes from, and then where
    /// the next batch does.
    fn freeze(&mut self, next: &mut Source, sink: Option<&Arc<Inbox>>, numbers: &mut Numbers, by: Admission);
    fn route(&self, span: Range<u32>, target: Routed, cx: &mut RouteContext);
    fn thaw(&mut self);
    fn name(&self) -> &'static str;
    /// Names and bytes of messages.
    #[cfg(feature = "testing")]
    fn encoded(&self, range: Range<u32>) -> Vec<(&'static str, Vec<u8>)>;
}

/// A target when its time has come.
#[derive(Clone, Copy)]
enum Routed {
    All,
    One(Address),
    Later { at: Time, app: u16 },
}

struct Typed<M: Message> {
    kind: Arc<MessageType<M>>,
    later: bool,
    messages: Vec<M>,
    /// Length of the last batch: the next one is likely to be as long, and need not grow step by step.
    usual: usize,
    batch: Option<Arc<Batch<M>>>,
    /// The batch was admitted by itself.
    admitted: bool,
    /// What is for later is remembered by itself; until it is, this is open.
    part_of: Option<Arc<Admitted>>,
}

impl<M: Message> Slot for Typed<M> {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn truncate(&mut self, len: u32) {
        while std::mem::needs_drop::<M>() && self.messages.len() > len as usize {
            // one by one: it may panic, and what comes after is to be undone, too
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
            self.batch = Some(Arc::new(Batch { messages, source, sink, admitted }));
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
            // all of it is routed
            admitted.close()
        }
    }

    fn name(&self) -> &'static str {
        M::NAME
    }

    #[cfg(feature = "testing")]
    fn encoded(&self, range: Range<u32>) -> Vec<(&'static str, Vec<u8>)> {
        let messages = self.messages.get(range.start as usize..range.end as usize).unwrap_or_default();
        // one that cannot be encoded fails later, where that matters
        let bytes = |message: &M| {
            panics::catch(std::panic::AssertUnwindSafe(|| crate::state::image::encode(message)))
                .unwrap_or_default()
        };
        messages.iter().map(|message| (M::NAME, bytes(message))).collect()
    }
}

/// A point in the outputs that can be gone back to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Savepoint {
    spans: u32,
    last_count: u32,
    total: u32,
    later: u32,
}

/// What the transactions of a run have emitted so far.
pub(crate) struct Outputs {
    types: Arc<Types>,
    /// By type, and whether for later: a message that waits for its time is at the start of a chain.
    slots: Vec<((TypeId, bool), Box<dyn Slot>)>,
    spans: Vec<Span>,
    total: u32,
    /// Messages among them that wait for their time.
    later: u32,
    /// Messages before the transaction that is running.
    base: u32,
    overflown: Option<&'static str>,
}

impl Outputs {
    pub(crate) fn new(types: Arc<Types>) -> Outputs {
        Outputs { types, slots: Vec::new(), spans: Vec::new(), total: 0, later: 0, base: 0, overflown: None }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(crate) fn len(&self) -> u32 {
        self.total
    }

    /// Where a transaction starts.
    #[inline(always)]
    pub(crate) fn mark(&mut self) -> Savepoint {
        self.base = self.total;
        self.savepoint()
    }

    /// A point inside a transaction.
    #[inline(always)]
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint {
            spans: self.spans.len() as u32,
            last_count: self.spans.last().map_or(0, |s| s.count),
            total: self.total,
            later: self.later,
        }
    }

    /// The limit that the transaction has passed, if any. Asking clears it.
    #[inline(always)]
    pub(crate) fn take_overflow(&mut self) -> Option<&'static str> {
        self.overflown.take()
    }

    /// Forgets what was emitted since `mark`.
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

    #[inline]
    pub(crate) fn emit<M: Message>(&mut self, message: M) {
        self.push(Target::All, message)
    }

    #[inline]
    pub(crate) fn send<M: Message>(&mut self, to: Address, message: M) {
        self.push(Target::One(to), message)
    }

    pub(crate) fn after<M: Message>(&mut self, at: Time, message: M) {
        self.push(Target::Later(at), message)
    }

    /// Counts one more message that waits for its time, if that is within the limit; the transaction fails otherwise.
    pub(crate) fn take_timer(&mut self) -> bool {
        let may = self.types.timers.free() > self.later;
        match may {
            true => self.later += 1,
            false => self.overflown = Some(TOO_MANY_TIMERS),
        }
        may
    }

    #[inline]
    fn push<M: Message>(&mut self, target: Target, message: M) {
        if self.total - self.base >= limits::EMITS_PER_TRANSACTION_MAX as u32 {
            self.overflown = Some(TOO_MANY_EMITS);
            return;
        }
        let later = matches!(target, Target::Later(_));
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

    /// Makes batches of what was emitted, with the next of `numbers`. They must be the same whenever the same is emitted, so
    /// it goes by the order of emission: the slots stand in the order in which this thread has used them first, for whatever.
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

    /// Hands over what was frozen, in order. `app`: the app that emitted it.
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
        self.base = 0;
    }

    /// Name and number of what was emitted, for the provenance counters.
    pub(crate) fn summary(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.spans.iter().filter_map(|s| Some((self.slots.get(s.slot as usize)?.1.name(), s.count)))
    }

    /// What was emitted since `mark`, in order.
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

    /// Forgets everything.
    pub(crate) fn discard(&mut self) {
        self.rollback(Savepoint::default());
        self.base = 0;
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
