//! Who handles what: the types of messages a hive knows, and their receivers.

use crate::cell::Outcome;
use crate::hash::HashMap;
use crate::hive::admission::credits::{Cause, Credits};
use crate::hive::admission::outside_lanes::Admitted;
use crate::hive::consensus::journal::{AppId, Emit, Sweep};
use crate::hive::dispatch::deferred::Onward;
use crate::hive::dispatch::effects::{Effect, RouteContext, Sink};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::ordered_release;
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::Turn;
use crate::hive::message::batch::{Address, Batch, Messages, Source, batch_of};
use crate::hive::message::dead_letters::Way;
use crate::hive::message::inbox::IoBees;
use crate::hive::message::{render, trace};
use crate::limits;
use crate::message::Message;
use crate::shape::Shape;
use crate::state::image::{DecodeError, decode};
use crate::time::Time;
use parking_lot::{Mutex, RwLock};
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// An app that handles messages of type `M`.
pub(crate) trait Receiver<M: Message>: Onward {
    fn app(&self) -> u16;
    /// Its handler, by its number.
    fn handler(&self) -> usize;
    fn answers(&self) -> bool;
    /// Takes what the app's map does not drop. `position`: in the chain of those that can answer.
    fn route(&self, batch: &Arc<Batch<M>>, range: Range<u32>, position: Option<u16>, cx: &mut RouteContext);
    /// What the map says about one message.
    fn outcome(&self, message: &M, turn: &Turn) -> Outcome;
    /// What a log is to remember of the messages of `range`: those that the map does not drop.
    fn emits(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        at: Option<Time>,
    ) -> Vec<Emit>;
}

/// One type of message on one hive.
pub(crate) struct MessageType<M: Message> {
    receivers: OnceLock<Receivers<M>>,
    io: Arc<IoBees>,
}

/// Goes on with a sweep that a log remembers.
type ResumeSweep = Box<dyn Fn(&Sweep, &mut RouteContext) -> Result<(), DecodeError> + Send + Sync>;

type List<M> = [Arc<dyn Receiver<M>>];

struct Receivers<M: Message> {
    observers: Vec<Arc<dyn Receiver<M>>>,
    chain: Vec<Arc<dyn Receiver<M>>>,
}

impl<M: Message> MessageType<M> {
    fn receivers(&self) -> (&List<M>, &List<M>) {
        match self.receivers.get() {
            Some(r) => (&r.observers, &r.chain),
            None => (&[], &[]),
        }
    }

    /// To every app that handles it.
    pub(crate) fn route(&self, batch: &Arc<Batch<M>>, range: Range<u32>, cx: &mut RouteContext) {
        if let Some(probe) = cx.turn.hive.probe() {
            probe.emitted(batch.clone(), range.clone())
        }
        if trace::is_on() {
            trace::emitted(M::NAME, &batch.source, range.clone())
        }
        let (observers, chain) = self.receivers();
        if observers.is_empty() && chain.is_empty() {
            cx.turn.hive.nobody_handles(M::NAME, batch.source.sender);
        }
        if let Some(sink) = &batch.sink
            && sink.counts()
        {
            for index in range.clone() {
                let Some(message) = batch.messages.get(index as usize) else { continue };
                let observing =
                    observers.iter().filter(|r| r.outcome(message, cx.turn) != Outcome::Drop).count();
                sink.expect(batch, index, observing as u32 + !chain.is_empty() as u32);
            }
        }
        for receiver in observers {
            receiver.route(batch, range.clone(), None, cx)
        }
        if let Some(first) = chain.first() {
            first.route(batch, range, Some(0), cx)
        }
    }

    /// Message `index` was passed on by the handler at `position` of the chain.
    pub(crate) fn pass_on(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: u16,
        cx: &mut RouteContext,
    ) {
        let next = position + 1;
        match self.receivers().1.get(next as usize) {
            Some(receiver) => receiver.route(batch, range, Some(next), cx),
            None => {
                if batch.sink.is_none() {
                    return;
                }
                let batch = batch.clone();
                let tell = move || {
                    if let Some(sink) = &batch.sink {
                        range.for_each(|index| sink.unanswered(&batch, index))
                    }
                };
                match cx.held() {
                    Some(effects) => effects.hold(move |_| tell()),
                    None => tell(),
                }
            }
        }
    }

    /// To one app or IO bee.
    pub(crate) fn send(&self, batch: &Arc<Batch<M>>, range: Range<u32>, to: Address, cx: &mut RouteContext) {
        if let Some(probe) = cx.turn.hive.probe() {
            probe.emitted(batch.clone(), range.clone())
        }
        if trace::is_on() {
            trace::emitted(M::NAME, &batch.source, range.clone())
        }
        match to {
            Address::Io(_, id) if cx.must_defer() => {
                let onward = Arc::new(ToIoBee::<M> { io: self.io.clone(), id, kind: PhantomData });
                // behind what some app has put off already
                cx.defer(0, onward, batch.clone(), range, None)
            }
            Address::Io(_, id) => to_io_bee(&self.io, id, batch, range, cx),
            Address::App(AppId(app)) => match self.receiver_of(app) {
                Some(receiver) => receiver.route(batch, range, None, cx),
                None => cx.turn.hive.nobody_handles(M::NAME, batch.source.sender),
            },
            Address::Outside => {}
        }
    }

    /// To one app, at a time. `part_of`: what is open until a record says so.
    pub(crate) fn send_later(
        self: &Arc<Self>,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        at: Time,
        app: u16,
        part_of: Option<&Arc<Admitted>>,
        cx: &mut RouteContext,
    ) {
        let Some(receiver) = self.receiver_of(app) else {
            return cx.turn.hive.nobody_handles(M::NAME, batch.source.sender);
        };
        let (kind, later, shared) = (self.clone(), batch.clone(), cx.queue.share());
        let wait = move |range: Range<u32>, turn: &mut Turn| {
            kind.set_timer((at, app), &later, range, shared, turn.hive)
        };
        if let Some(effects) = cx.held() {
            effects.emits.extend(receiver.emits(batch, range.clone(), None, Some(at)));
            return effects.hold(move |cx| wait(range, cx.turn));
        }
        if part_of.is_none() {
            return wait(range, cx.turn);
        }
        // a stateless handler asks for it, which ran for a message from outside
        for index in range {
            let one = index..index + 1;
            for emit in receiver.emits(batch, one.clone(), None, Some(at)) {
                let (wait, one) = (wait.clone(), one.clone());
                let step: Effect = Box::new(move |cx| wait(one, cx.turn));
                let handler = receiver.handler();
                ordered_release::consume(emit.id, handler, part_of, vec![emit], vec![step], cx)
            }
        }
    }

    /// Gives `app` the messages of `range` at a time, on the lane of whoever asked for it: two that ring one after the other
    /// come in that order.
    pub(crate) fn set_timer(
        self: &Arc<Self>,
        (at, app): (Time, u16),
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        lane: SenderQueue,
        hive: &HiveInner,
    ) {
        let (kind, batch, count, mut lane) = (self.clone(), batch.clone(), range.len(), lane);
        let waiting = hive.types.timers.take(count as u32);
        let fire = move |turn: &mut Turn| {
            // until all that it brings about is done it counts as one that waits: else nothing would bound who sets
            // timers faster than they are handled
            turn.cause = Some(Cause::of(waiting, &turn.hive.in_flight));
            kind.send(&batch, range, Address::App(AppId(app)), &mut RouteContext::new(&mut lane, turn));
            turn.cause = None
        };
        hive.timers.at(at, Box::new(fire))
    }

    pub(crate) fn receiver_of(&self, app: u16) -> Option<&Arc<dyn Receiver<M>>> {
        let (observers, chain) = self.receivers();
        observers.iter().chain(chain).find(|r| r.app() == app)
    }
}

fn to_io_bee<M: Message>(
    io: &Arc<IoBees>,
    id: u64,
    batch: &Arc<Batch<M>>,
    range: Range<u32>,
    cx: &mut RouteContext,
) {
    if trace::is_on() {
        trace::delivered(M::NAME, &batch.source, range.clone(), id)
    }
    match &mut cx.sink {
        Sink::Held(effects) => {
            let (io, batch, cause) = (io.clone(), batch.clone(), cx.turn.cause.clone());
            effects.hold(move |_| io.deliver(id, &batch, range, &cause))
        }
        Sink::Now => io.deliver(id, batch, range, &cx.turn.cause),
    }
}

/// Brings messages to an IO bee, later.
struct ToIoBee<M> {
    io: Arc<IoBees>,
    id: u64,
    kind: PhantomData<fn(M)>,
}

impl<M: Message> Onward for ToIoBee<M> {
    fn route_on(&self, batch: &Arc<dyn Messages>, range: Range<u32>, _: Option<u16>, cx: &mut RouteContext) {
        if let Some(batch) = batch_of::<M>(batch.clone()) {
            to_io_bee(&self.io, self.id, &batch, range, cx)
        }
    }
}

type Kind = Box<dyn Any + Send + Sync>;

/// A message that was encoded, and is to be brought to an app again.
pub(crate) struct Again<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) source: Source,
    /// In the chain of those that can answer.
    pub(crate) position: Option<u16>,
    /// If it comes from outside.
    pub(crate) admitted: Option<Arc<Admitted>>,
    /// Not before this moment.
    pub(crate) at: Option<Time>,
}

/// How a message is sent again to one app.
trait Resend: Send + Sync {
    /// Whether the bytes are a message.
    fn check(&self, bytes: &[u8]) -> Result<(), DecodeError>;
    /// Who routes such messages to the app.
    fn onward(&self) -> Arc<dyn Onward>;
    /// Decodes a message and brings it to its app.
    fn send(&self, again: Again, cx: &mut RouteContext) -> Result<(), DecodeError>;
}

struct ResendTo<M: Message>(Arc<dyn Receiver<M>>);

impl<M: Message> Resend for ResendTo<M> {
    fn onward(&self) -> Arc<dyn Onward> {
        self.0.clone()
    }

    fn check(&self, bytes: &[u8]) -> Result<(), DecodeError> {
        decode::<M>("a message", bytes).map(|_| ())
    }

    fn send(&self, again: Again, cx: &mut RouteContext) -> Result<(), DecodeError> {
        let Again { bytes, source, position, admitted, at } = again;
        let messages = vec![decode::<M>("a message", bytes)?];
        let batch = Arc::new(Batch { messages, source, sink: None, admitted });
        match at {
            Some(at) => {
                let kind = cx.turn.hive.types.kind::<M>();
                let (app, lane) = (self.0.app(), cx.queue.share());
                kind.set_timer((at, app), &batch, 0..1, lane, cx.turn.hive)
            }
            None => self.0.route(&batch, 0..1, position, cx),
        }
        Ok(())
    }
}

/// A type of message that has a name.
struct Named {
    id: TypeId,
    place: &'static str,
    shape: fn() -> Shape,
    words: fn(&[u8]) -> Result<String, DecodeError>,
}

/// Two types of messages that have the same name, and where they are.
pub(crate) struct SameName {
    pub(crate) name: &'static str,
    pub(crate) places: [&'static str; 2],
}

/// All types of messages of a hive.
pub(crate) struct Types {
    io: Arc<IoBees>,
    kinds: RwLock<HashMap<TypeId, Kind>>,
    /// Taken by messages that handlers have set timers for, until they and what they cause are done.
    pub(crate) timers: Arc<Credits>,
    /// By app and stable name: how to send a message again that a log remembers.
    resend: RwLock<HashMap<(u16, String), Arc<dyn Resend>>>,
    /// By app and stable name: how to go on with a sweep.
    resume: RwLock<HashMap<(u16, String), ResumeSweep>>,
    /// By name: what a message is that is known by nothing else.
    named: RwLock<BTreeMap<&'static str, Named>>,
    clash: Mutex<Option<SameName>>,
    /// Names of messages that some app handles.
    handled: RwLock<BTreeSet<&'static str>>,
    /// Receivers while the hive is being built.
    pending: Mutex<HashMap<TypeId, Box<dyn Any + Send>>>,
}

impl Types {
    pub(crate) fn new(io: Arc<IoBees>) -> Arc<Types> {
        Arc::new(Types {
            io,
            kinds: RwLock::default(),
            timers: Credits::new(limits::TIMERS_WAITING_MAX as u32),
            resend: RwLock::default(),
            resume: RwLock::default(),
            named: RwLock::default(),
            clash: Mutex::default(),
            handled: RwLock::default(),
            pending: Mutex::default(),
        })
    }

    /// The type `M`; made known if it is not.
    pub(crate) fn kind<M: Message>(&self) -> Arc<MessageType<M>> {
        let found = |kinds: &HashMap<TypeId, Kind>| {
            kinds.get(&TypeId::of::<M>()).and_then(|kind| kind.downcast_ref::<Arc<MessageType<M>>>()).cloned()
        };
        if let Some(kind) = found(&self.kinds.read()) {
            return kind;
        }
        let mut kinds = self.kinds.write();
        if let Some(kind) = found(&kinds) {
            return kind;
        }
        let kind = Arc::new(MessageType::<M> { receivers: OnceLock::new(), io: self.io.clone() });
        kinds.insert(TypeId::of::<M>(), Box::new(kind.clone()));
        kind
    }

    /// Sends a message again that a log remembers.
    pub(crate) fn resend(&self, emit: &Emit, cx: &mut RouteContext) -> Result<(), DecodeError> {
        let (source, at) = (Source::again(emit), emit.at);
        let again = Again { bytes: &emit.bytes, source, position: emit.position, admitted: None, at };
        self.send_again(emit.id.app.0, &emit.name, again, cx)
    }

    /// Sends a message again to an app, which takes it by this name.
    pub(crate) fn send_again(
        &self,
        app: u16,
        name: &str,
        again: Again,
        cx: &mut RouteContext,
    ) -> Result<(), DecodeError> {
        self.resend_to(app, name)?.send(again, cx)
    }

    /// Whether a message that was encoded can be sent again.
    pub(crate) fn check(&self, way: &Way, bytes: &[u8]) -> Result<(), DecodeError> {
        self.resend_to(way.app, &way.name)?.check(bytes)
    }

    /// Who routes messages that app `app` takes by this name.
    pub(crate) fn onward(&self, app: u16, name: &str) -> Option<Arc<dyn Onward>> {
        Some(self.resend_to(app, name).ok()?.onward())
    }

    fn resend_to(&self, app: u16, name: &str) -> Result<Arc<dyn Resend>, DecodeError> {
        let known = self.resend.read().get(&(app, name.to_string())).cloned();
        let why = || format!("the app does not handle `{name}`");
        known.ok_or_else(|| DecodeError { what: "a message", why: why() })
    }

    /// Goes on with a sweep that a log remembers.
    pub(crate) fn resume_sweep(&self, sweep: &Sweep, cx: &mut RouteContext) -> Result<(), DecodeError> {
        let emit = &sweep.waiting.emit;
        match self.resume.read().get(&(emit.id.app.0, emit.name.clone())) {
            Some(resume) => resume(sweep, cx),
            None => {
                Err(DecodeError { what: "a sweep", why: format!("the app has no handler `{}`", emit.name) })
            }
        }
    }

    /// Names how the sweeps of a handler are gone on with.
    pub(crate) fn remember_sweep(&self, app: u16, name: String, resume: ResumeSweep) {
        self.resume.write().insert((app, name), resume);
    }

    /// Names how messages of type `M` are sent again to a receiver that is not there for everybody.
    pub(crate) fn remember<M: Message>(&self, name: String, receiver: Arc<dyn Receiver<M>>) {
        self.resend.write().insert((receiver.app(), name), Arc::new(ResendTo(receiver)));
    }

    /// Makes the name of `M` known.
    fn name<M: Message>(&self) {
        // every app has its own
        if M::NAME.starts_with("beehive::") {
            return;
        }
        let words = |bytes: &[u8]| {
            decode::<M>("a message", bytes).map(|message| render::bounded(&message, limits::WORDS_BYTES_MAX))
        };
        let (id, place) = (TypeId::of::<M>(), M::PLACE);
        let mut named = self.named.write();
        let known = named.entry(M::NAME).or_insert(Named { id, place, shape: Shape::of::<M>, words });
        if known.id != id {
            let clash = SameName { name: M::NAME, places: [known.place, place] };
            self.clash.lock().get_or_insert(clash);
        }
    }

    /// Two types with the same name, if there were any so far.
    pub(crate) fn take_clash(&self) -> Option<SameName> {
        self.clash.lock().take()
    }

    /// What the messages that some app handles are encoded like.
    pub(crate) fn shapes(&self) -> BTreeMap<String, Shape> {
        self.named.read().iter().map(|(name, known)| (name.to_string(), (known.shape)())).collect()
    }

    /// An encoded message in words; which type it has, its name says.
    pub(crate) fn in_words(&self, name: &str, bytes: &[u8]) -> Result<String, DecodeError> {
        let known = self.named.read().get(name).map(|known| known.words);
        match known {
            Some(words) => words(bytes),
            None => {
                Err(DecodeError { what: "a message", why: format!("no app handles one called `{name}`") })
            }
        }
    }

    /// Adds a receiver, before [`Types::seal`].
    pub(crate) fn receive<M: Message>(&self, name: String, receiver: Arc<dyn Receiver<M>>) {
        self.name::<M>();
        self.remember(name, receiver.clone());
        let mut pending = self.pending.lock();
        let entry =
            pending.entry(TypeId::of::<M>()).or_insert_with(|| Box::new(Vec::<Arc<dyn Receiver<M>>>::new()));
        if let Some(list) = entry.downcast_mut::<Vec<Arc<dyn Receiver<M>>>>() {
            list.push(receiver)
        }
    }

    /// Fixes the receivers of `M`, in the order of the apps.
    pub(crate) fn seal<M: Message>(&self) {
        let Some(list) = self.pending.lock().remove(&TypeId::of::<M>()) else { return };
        let Ok(list) = list.downcast::<Vec<Arc<dyn Receiver<M>>>>() else { return };
        self.handled.write().insert(M::NAME);
        let (chain, observers) = list.into_iter().partition(|r| r.answers());
        let _ = self.kind::<M>().receivers.set(Receivers { observers, chain });
    }

    /// Names of all types that some app handles, in order.
    pub(crate) fn handled(&self) -> Vec<&'static str> {
        self.handled.read().iter().copied().collect()
    }
}
