//! A hive's message types, and the apps that receive each of them.

use crate::cell::HiveId;
use crate::hash::HashMap;
use crate::hive::admission::credits::{Cause, Credits};
use crate::hive::admission::entrances::Entrance;
use crate::hive::admission::offices::Office;
use crate::hive::admission::outside_lanes::{Admitted, Numbers};
use crate::hive::consensus::journal::{AppId, Emit, Emits, LaneId};
use crate::hive::dispatch::effects::{Effect, RouteContext, Sink};
use crate::hive::dispatch::sender::deferred::Onward;
use crate::hive::dispatch::sender::ordered_release;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::Turn;
use crate::hive::dispatch::types::handler::{LoggedName, is_built_in};
use crate::hive::dispatch::types::logged_types::LoggedTypes;
use crate::hive::message::batch::{Address, Batch, Messages, batch_of};
use crate::hive::message::inbox::IoBees;
use crate::hive::message::payloads::Payloads;
use crate::hive::message::{remote_mail, render, trace};
use crate::limits;
use crate::message::Message;
use crate::mutant::Mutant;
use crate::shape::Shape;
use crate::state::image::{DecodeError, decode};
use crate::time::Time;
use parking_lot::{Mutex, RwLock};
use smallvec::smallvec;
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// An app as a receiver of messages of type `M`.
pub(crate) trait Receiver<M: Message>: Onward {
    /// Returns the app's number.
    fn app(&self) -> u16;
    /// Checks whether the handler can answer.
    fn answers(&self) -> bool;
    /// Maps the messages in `range` and routes each to the owner of its cells, to the stateless handler, or,
    /// if the map drops it, to the next app in the answer chain. `position` is the app's position in the
    /// answer chain, if it is in the chain.
    fn route(&self, batch: &Arc<Batch<M>>, range: Range<u32>, position: Option<u16>, cx: &mut RouteContext);
    /// Checks whether the map drops message `index`. Returns `false` if the hive verifies maps and finds that
    /// the map wrongly drops the message.
    fn drops(&self, batch: &Batch<M>, index: u32, turn: &mut Turn) -> bool;
    /// Returns the outbox entries for the messages in `range` that the map does not drop, or none if the app
    /// is not journaled. `at` is the due time if a timer sends the messages.
    fn emits(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        at: Option<Time>,
        payloads: &mut Payloads,
    ) -> Vec<Emit>;
}

/// A message type on one hive.
pub(crate) struct MessageType<M: Message> {
    /// The apps that handle the type. [`Types::seal`] sets this when the hive is built. Empty if no app
    /// handles the type.
    receivers: OnceLock<Receivers<M>>,
    /// The entrance of messages of this type.
    entrance: OnceLock<Arc<Entrance>>,
    /// The IO bees of the hive.
    io: Arc<IoBees>,
}

/// Some receivers of one message type, in the order of the apps.
type List<M> = [Arc<dyn Receiver<M>>];

/// All receivers of one message type.
struct Receivers<M: Message> {
    /// Apps whose handlers cannot answer. Each app gets every message.
    observers: Vec<Arc<dyn Receiver<M>>>,
    /// The answer chain: apps whose handlers can answer. The first app gets every message. Each app may
    /// pass a message on to the next one.
    chain: Vec<Arc<dyn Receiver<M>>>,
}

impl<M: Message> MessageType<M> {
    /// Returns the observers and the answer chain.
    fn receivers(&self) -> (&List<M>, &List<M>) {
        match self.receivers.get() {
            Some(r) => (&r.observers, &r.chain),
            None => (&[], &[]),
        }
    }

    /// Returns the entrance of messages of this type. `to` finds it, given the apps that handle the type.
    pub(crate) fn entrance(&self, to: impl FnOnce(&[AppId]) -> Arc<Entrance>) -> Arc<Entrance> {
        let find = || {
            let (observers, chain) = self.receivers();
            let apps = observers.iter().chain(chain).map(|receiver| AppId(receiver.app()));
            to(&apps.collect::<Vec<_>>())
        };
        self.entrance.get_or_init(find).clone()
    }

    /// Routes messages to all apps that handle them.
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
            // the requester waits for the answer chain and for each observer that does not drop the message
            for index in range.clone() {
                let observing = observers.iter().filter(|r| !r.drops(batch, index, cx.turn)).count();
                let is_handled = !(observers.is_empty() && chain.is_empty());
                let reporting = observing as u32 + !chain.is_empty() as u32;
                sink.expect(batch, index, is_handled.then_some(reporting));
            }
        }

        // several apps get the messages, and a record contains their payloads once
        let is_shared = observers.len() + usize::from(!chain.is_empty()) > 1;
        let shared = cx.held().filter(|_| is_shared);
        let outer = shared.map(|effects| std::mem::replace(&mut effects.payloads, Payloads::shared(batch)));

        for receiver in observers {
            receiver.route(batch, range.clone(), None, cx)
        }
        if let Some(first) = chain.first() {
            first.route(batch, range, Some(0), cx)
        }

        if let Some(outer) = outer
            && let Some(effects) = cx.held()
        {
            effects.payloads = outer
        }
    }

    /// Passes on a message that the app at `position` in the answer chain has handled. The message gets the
    /// next sequence number of the bee or stateless handler that handled it, because the original sender is
    /// done with the message as soon as its consumption is committed. If the message kept its original
    /// number, the next app would ignore it as a duplicate once the sender's floor had passed that number,
    /// and the message would be lost.
    pub(crate) fn pass_on_handled(
        &self,
        batch: &Arc<Batch<M>>,
        index: u32,
        position: u16,
        cx: &mut RouteContext,
    ) {
        let is_last = self.receivers().1.get(position as usize + 1).is_none();
        let keeps_number = is_last || cx.turn.hive.breaks(Mutant::PassOnSameNumber);
        let numbers = match cx.held() {
            _ if keeps_number => None,
            Some(effects) => Some(effects.numbers.take(1)),
            // handled in memory only: the message may already have been removed from its log
            None if batch.admitted.is_none() && batch.source.numbers.lane != LaneId::NONE => {
                Some(Numbers::NONE)
            }
            None => None,
        };
        match numbers {
            Some(numbers) => {
                let asks = !cx.turn.hive.breaks(Mutant::AskerForgotten);
                self.pass_on(&batch.pass_on(index, numbers, asks), 0..1, position, cx)
            }
            None => self.pass_on(batch, index..index + 1, position, cx),
        }
    }

    /// Hands messages to the app after `position` in the answer chain. If there is no such app, tells the
    /// requester that the messages are unanswered.
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
                    Some(effects) => effects.hold_report(move |_| tell()),
                    None => tell(),
                }
            }
        }
    }

    /// Sends messages to a single app or IO bee.
    pub(crate) fn send(&self, batch: &Arc<Batch<M>>, range: Range<u32>, to: Address, cx: &mut RouteContext) {
        if let Some(probe) = cx.turn.hive.probe() {
            probe.emitted(batch.clone(), range.clone())
        }
        if trace::is_on() {
            trace::emitted(M::NAME, &batch.source, range.clone())
        }

        match to {
            Address::Io(hive, id) if cx.must_defer() => {
                let to = (hive, id);
                let onward = Arc::new(ToIoBee::<M> { io: self.io.clone(), to, kind: PhantomData });
                // the messages wait behind the sender's deferred messages. That queue already
                // exists, so the app number is not used
                cx.defer(0, onward, batch.clone(), range, None)
            }
            Address::Io(hive, id) => to_io_bee(&self.io, (hive, id), batch, range, cx),
            Address::App(AppId(app)) => match self.receiver_of(app) {
                Some(receiver) => receiver.route(batch, range, None, cx),
                None => cx.turn.hive.nobody_handles(M::NAME, batch.source.sender),
            },
            Address::Outside => {}
        }
    }

    /// Sends messages to one app at a given time. If a stateless handler set the timer, `part_of` is the
    /// admitted batch for which it ran. That batch stays open until a record contains the timer.
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

        let wait =
            move |range: Range<u32>, turn: &mut Turn| kind.set_timer((at, app), &later, range, shared, turn);

        if let Some(effects) = cx.held() {
            let emits = receiver.emits(batch, range.clone(), None, Some(at), &mut effects.payloads);
            effects.emits.extend(emits);
            return effects.hold(move |cx| wait(range, cx.turn));
        }

        // record nothing for an app whose state is in memory only
        if part_of.is_none() || cx.turn.hive.log_of(AppId(app)).is_none() {
            return wait(range, cx.turn);
        }
        // A stateless handler set these timers while handling messages from outside. Each timer gets its own record, which
        // consumes it under the id that derives from the message, and logs it under a number on the lane of its app: nobody
        // acknowledges a message on the lane of a sender outside, because such a sender sends again what is not handled. Here
        // the log does, so the log must learn when the message is handled.
        for index in range {
            let consumed = batch.source.message_id(index, app);
            let Some(link) = cx.turn.hive.log_for_stateless(consumed) else { continue };
            let reserved = link.reserve(AppId(app));
            let timer = batch.pass_on(index, Numbers::again(reserved.id), false);
            let mut emits = receiver.emits(&timer, 0..1, None, Some(at), &mut Payloads::default());
            let Some(emit) = emits.pop() else { continue };
            let (kind, shared) = (self.clone(), cx.queue.share());
            let step: Effect = Box::new(move |cx| kind.set_timer((at, app), &timer, 0..1, shared, cx.turn));
            ordered_release::consume(
                &link,
                consumed,
                emit.message_type.into(),
                part_of,
                (Emits(vec![emit]), Some(reserved), false),
                smallvec![step],
                cx,
            )
        }
    }

    /// Sets a timer that sends the messages in `range` to `app` through `queue`, the queue of the sender that
    /// set the timer. Messages from two of a sender's timers therefore arrive in the order in which the
    /// timers fire.
    pub(crate) fn set_timer(
        self: &Arc<Self>,
        (at, app): (Time, u16),
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        queue: SenderQueue,
        turn: &Turn,
    ) {
        let (kind, batch, count, mut queue) = (self.clone(), batch.clone(), range.len(), queue);
        let (hive, office) = (turn.hive, turn.office);
        if !hive.holds(office) {
            return;
        }
        let waiting = hive.types.timers.take(count as u32);

        let fire = move |turn: &mut Turn| {
            let Some(_entered) = queue.enter(batch.source.numbers.lane) else { return };
            if !turn.hive.holds(office) {
                return;
            }
            // the timer keeps its credits until everything it causes is done. Otherwise nothing would hold
            // back a handler that sets timers faster than their messages are handled
            turn.cause = Some(Cause::of(waiting, &turn.hive.in_flight));
            turn.office = office;
            kind.send(&batch, range, Address::App(AppId(app)), &mut RouteContext::new(&mut queue, turn));
            (turn.cause, turn.office) = (None, Office::NONE)
        };

        hive.timers.in_office(office, at, Box::new(fire))
    }

    /// Returns the receiver in app `app`.
    pub(crate) fn receiver_of(&self, app: u16) -> Option<&Arc<dyn Receiver<M>>> {
        let (observers, chain) = self.receivers();
        observers.iter().chain(chain).find(|r| r.app() == app)
    }
}

/// Delivers messages to an IO bee, either immediately or when the record is committed.
fn to_io_bee<M: Message>(
    io: &Arc<IoBees>,
    (hive, id): (HiveId, u64),
    batch: &Arc<Batch<M>>,
    range: Range<u32>,
    cx: &mut RouteContext,
) {
    if let Some(links) = cx.turn.hive.links.as_ref().filter(|_| hive != cx.turn.hive.id) {
        let (links, shed) = (links.clone(), io.shed.clone());
        let (batch, cause) = (batch.clone(), cx.turn.cause.clone());
        let mail = move || remote_mail::send((&links, &shed), (hive, id), &batch, range, cause.as_ref());
        return match &mut cx.sink {
            Sink::Held(effects) => effects.hold(move |_| mail()),
            Sink::Now => mail(),
        };
    }
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

/// Delivers deferred messages to an IO bee.
struct ToIoBee<M> {
    io: Arc<IoBees>,
    to: (HiveId, u64),
    kind: PhantomData<fn(M)>,
}

impl<M: Message> Onward for ToIoBee<M> {
    fn route_on(&self, batch: &Arc<dyn Messages>, range: Range<u32>, _: Option<u16>, cx: &mut RouteContext) {
        if let Some(batch) = batch_of::<M>(batch.clone()) {
            to_io_bee(&self.io, self.to, &batch, range, cx)
        }
    }
}

/// A `MessageType` with its type erased.
type Kind = Box<dyn Any + Send + Sync>;

/// A message type that can be found by its name.
struct Named {
    /// The type.
    id: TypeId,
    /// The place of the type's definition.
    place: &'static str,
    /// Returns the shape of its encoding.
    shape: fn() -> Shape,
    /// Renders an encoded message as JSON.
    words: fn(&[u8]) -> Result<String, DecodeError>,
}

/// Two message types with the same name.
pub(crate) struct SameName {
    /// The name.
    pub(crate) name: &'static str,
    /// The places of the two definitions.
    pub(crate) places: [&'static str; 2],
}

/// All message types of a hive.
pub(crate) struct Types {
    /// The IO bees of the hive.
    io: Arc<IoBees>,
    /// The types, by `TypeId`.
    kinds: RwLock<HashMap<TypeId, Kind>>,
    /// Credits for timers. A timer holds one credit per message until everything caused by that message is
    /// done.
    pub(crate) timers: Arc<Credits>,
    /// The types by the numbers that stand for them in a log.
    pub(crate) logged: LoggedTypes,
    /// The types by name. Used for encoded messages whose type is known only by name.
    named: RwLock<BTreeMap<&'static str, Named>>,
    /// The first name found to be shared by two types.
    clash: Mutex<Option<SameName>>,
    /// Names of the message types handled by at least one app.
    handled: RwLock<BTreeSet<&'static str>>,
    /// The receivers added but not yet sealed.
    pending: Mutex<HashMap<TypeId, Box<dyn Any + Send>>>,
}

impl Types {
    /// Creates an empty set of types.
    pub(crate) fn new(io: Arc<IoBees>) -> Arc<Types> {
        Arc::new(Types {
            io,
            kinds: RwLock::default(),
            timers: Credits::of_timers(limits::TIMERS_WAITING_MAX as u32),
            logged: LoggedTypes::default(),
            named: RwLock::default(),
            clash: Mutex::default(),
            handled: RwLock::default(),
            pending: Mutex::default(),
        })
    }

    /// Returns message type `M`, adding it if necessary.
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

        let kind = Arc::new(MessageType::<M> {
            receivers: OnceLock::new(),
            entrance: OnceLock::new(),
            io: self.io.clone(),
        });
        kinds.insert(TypeId::of::<M>(), Box::new(kind.clone()));
        kind
    }

    /// Registers the name of `M`. If another type has the same name, remembers the clash.
    fn name<M: Message>(&self) {
        // every app has its own built-in types, so their names are not unique
        if is_built_in(M::NAME) {
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

    /// Takes the remembered clash: two types with the same name, if there are any.
    pub(crate) fn take_clash(&self) -> Option<SameName> {
        self.clash.lock().take()
    }

    /// Returns the encoding shape of every message type handled by at least one app.
    pub(crate) fn shapes(&self) -> BTreeMap<String, Shape> {
        self.named.read().iter().map(|(name, known)| (name.to_string(), (known.shape)())).collect()
    }

    /// Returns an encoded message as JSON. `name` is the name of its type.
    pub(crate) fn in_words(&self, name: &str, bytes: &[u8]) -> Result<String, DecodeError> {
        let known = self.named.read().get(name).map(|known| known.words);
        match known {
            Some(words) => words(bytes),
            None => {
                Err(DecodeError { what: "a message", why: format!("no app handles one called `{name}`") })
            }
        }
    }

    /// Adds a receiver. Must be called before [`Types::seal`].
    pub(crate) fn receive<M: Message>(&self, name: LoggedName, receiver: Arc<dyn Receiver<M>>) {
        self.name::<M>();
        self.logged.add_receiver(name, receiver.clone());

        let mut pending = self.pending.lock();
        let entry =
            pending.entry(TypeId::of::<M>()).or_insert_with(|| Box::new(Vec::<Arc<dyn Receiver<M>>>::new()));

        if let Some(list) = entry.downcast_mut::<Vec<Arc<dyn Receiver<M>>>>() {
            list.push(receiver)
        }
    }

    /// Adds a message type without a receiver. `name` identifies a handler of it in a log.
    pub(crate) fn describe<M: Message>(&self, name: LoggedName) {
        self.name::<M>();
        self.logged.number(name)
    }

    /// Seals the receiver list of `M`, in insertion order, which is the order of the apps.
    pub(crate) fn seal<M: Message>(&self) {
        let Some(list) = self.pending.lock().remove(&TypeId::of::<M>()) else { return };
        let Ok(list) = list.downcast::<Vec<Arc<dyn Receiver<M>>>>() else { return };

        self.handled.write().insert(M::NAME);
        let (chain, observers) = list.into_iter().partition(|r| r.answers());
        let _ = self.kind::<M>().receivers.set(Receivers { observers, chain });
    }

    /// Returns the names of all message types handled by at least one app, in alphabetical order.
    pub(crate) fn handled(&self) -> Vec<&'static str> {
        self.handled.read().iter().copied().collect()
    }
}
