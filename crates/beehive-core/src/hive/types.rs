//! Who handles what: the types of messages a hive knows, and their receivers.

use crate::cell::Outcome;
use crate::hive::Address;
use crate::hive::admission::Admitted;
use crate::hive::batch::{Batch, Source};
use crate::hive::credit::Credits;
use crate::hive::gate::Step;
use crate::hive::io::IoBees;
use crate::hive::journal::{Emit, Sweep};
use crate::hive::lane::SenderLane;
use crate::hive::recorder::Recorder;
use crate::hive::turn::Turn;
use crate::hive::unowned;
use crate::limits;
use crate::message::Message;
use crate::state::image::{DecodeError, decode};
use crate::time::Time;
use parking_lot::{Mutex, RwLock};
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;

/// An app that handles messages of type `M`.
pub(crate) trait Receiver<M: Message>: Send + Sync {
    fn app(&self) -> u16;
    /// Its handler, by its number.
    fn handler(&self) -> usize;
    fn answers(&self) -> bool;
    /// Takes what the app's map does not drop. `position`: in the chain of those that can answer.
    fn route(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    );
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
    /// Of a test that wants to know what was sent.
    recorder: Option<Arc<Recorder>>,
}

/// Goes on with a sweep that a log remembers.
type ResumeSweep = Box<dyn Fn(&Sweep, &mut SenderLane, &mut Turn) -> Result<(), DecodeError> + Send + Sync>;

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
    pub(crate) fn route(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        if let Some(recorder) = &self.recorder {
            recorder.note(batch, range.clone())
        }
        let (observers, chain) = self.receivers();
        if observers.is_empty() && chain.is_empty() {
            turn.hive.nobody_handles(M::NAME);
        }
        if let Some(sink) = &batch.sink
            && sink.counts()
        {
            for index in range.clone() {
                let Some(message) = batch.messages.get(index as usize) else { continue };
                let observing =
                    observers.iter().filter(|r| r.outcome(message, turn) != Outcome::Drop).count();
                sink.expect(batch, index, observing as u32 + !chain.is_empty() as u32);
            }
        }
        for receiver in observers {
            receiver.route(batch, range.clone(), None, lane, turn)
        }
        if let Some(first) = chain.first() {
            first.route(batch, range, Some(0), lane, turn)
        }
    }

    /// Message `index` was passed on by the handler at `position` of the chain.
    pub(crate) fn pass_on(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: u16,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let next = position + 1;
        match self.receivers().1.get(next as usize) {
            Some(receiver) => receiver.route(batch, range, Some(next), lane, turn),
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
                match &mut turn.gate {
                    Some(gate) => gate.hold(move |_, _| tell()),
                    None => tell(),
                }
            }
        }
    }

    /// To one app or IO bee.
    pub(crate) fn send(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        to: Address,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        if let Some(recorder) = &self.recorder {
            recorder.note(batch, range.clone())
        }
        match to {
            Address::Io(_, id) if turn.is_put_off(lane) => {
                let io = self.io.clone();
                // behind what some app has put off already
                turn.put_off(0, batch, lane, move |batch, _, turn| to_io_bee(&io, id, batch, range, turn))
            }
            Address::Io(_, id) => to_io_bee(&self.io, id, batch, range, turn),
            Address::App(app) => match self.receiver_of(app) {
                Some(receiver) => receiver.route(batch, range, None, lane, turn),
                None => turn.hive.nobody_handles(M::NAME),
            },
            Address::Outside => {}
        }
    }

    /// To one app, at a time. `part_of`: what is open until a record says so.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn send_later(
        self: &Arc<Self>,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        at: Time,
        app: u16,
        part_of: Option<&Arc<Admitted>>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let Some(receiver) = self.receiver_of(app) else { return turn.hive.nobody_handles(M::NAME) };
        let (kind, later, shared) = (self.clone(), batch.clone(), lane.share());
        let wait = move |range: Range<u32>, turn: &mut Turn| {
            turn.hive.timers.after(at, app, &kind, &later, range, shared, &turn.hive.types)
        };
        if let Some(gate) = &mut turn.gate {
            gate.emits.extend(receiver.emits(batch, range.clone(), None, Some(at)));
            return gate.hold(move |_, turn| wait(range, turn));
        }
        if part_of.is_none() {
            return wait(range, turn);
        }
        // a stateless handler asks for it, which ran for a message from outside
        for index in range {
            let one = index..index + 1;
            for emit in receiver.emits(batch, one.clone(), None, Some(at)) {
                let (wait, one) = (wait.clone(), one.clone());
                let step: Step = Box::new(move |_, turn| wait(one, turn));
                let handler = receiver.handler();
                unowned::consume(emit.fact, handler, part_of, vec![emit], vec![step], lane, turn)
            }
        }
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
    turn: &mut Turn,
) {
    match &mut turn.gate {
        Some(gate) => {
            let (io, batch, cause) = (io.clone(), batch.clone(), turn.cause.clone());
            gate.hold(move |_, _| io.deliver(id, &batch, range, &cause))
        }
        None => io.deliver(id, batch, range, &turn.cause),
    }
}

struct Registered {
    kind: Box<dyn Any + Send + Sync>,
    name: &'static str,
}

/// Decodes a message that a log remembers and brings it to its app.
type Resend = Box<dyn Fn(&Emit, &mut SenderLane, &mut Turn) -> Result<(), DecodeError> + Send + Sync>;

fn resend<M: Message>(receiver: Arc<dyn Receiver<M>>) -> Resend {
    Box::new(move |emit, lane, turn| {
        let messages = vec![decode::<M>("a message", &emit.bytes)?];
        let batch = Batch::new(messages, Source::again(emit));
        match emit.at {
            Some(at) => {
                let kind = turn.hive.types.kind::<M>();
                let lane = lane.share();
                turn.hive.timers.after(at, emit.fact.app, &kind, &batch, 0..1, lane, &turn.hive.types)
            }
            None => receiver.route(&batch, 0..1, emit.position, lane, turn),
        }
        Ok(())
    })
}

/// All types of messages of a hive.
pub(crate) struct Types {
    io: Arc<IoBees>,
    recorder: Option<Arc<Recorder>>,
    kinds: RwLock<HashMap<TypeId, Registered>>,
    /// Taken by messages that handlers have set timers for, until they and what they cause are done.
    pub(crate) timers: Arc<Credits>,
    /// By app and stable name: how to send a message again that a log remembers.
    resend: RwLock<HashMap<(u16, String), Resend>>,
    /// By app and stable name: how to go on with a sweep.
    resume: RwLock<HashMap<(u16, String), ResumeSweep>>,
    /// Receivers while the hive is being built.
    pending: Mutex<HashMap<TypeId, Box<dyn Any + Send>>>,
}

impl Types {
    pub(crate) fn new(io: Arc<IoBees>) -> Arc<Types> {
        Types::recorded(io, None)
    }

    /// As [`Types::new`]; `recorder` is told what apps send.
    pub(crate) fn recorded(io: Arc<IoBees>, recorder: Option<Arc<Recorder>>) -> Arc<Types> {
        Arc::new(Types {
            io,
            recorder,
            kinds: RwLock::default(),
            timers: Credits::new(limits::TIMERS_WAITING_MAX as u32),
            resend: RwLock::default(),
            resume: RwLock::default(),
            pending: Mutex::default(),
        })
    }

    /// The type `M`; made known if it is not.
    pub(crate) fn kind<M: Message>(&self) -> Arc<MessageType<M>> {
        let found = |kinds: &HashMap<TypeId, Registered>| {
            kinds.get(&TypeId::of::<M>()).and_then(|r| r.kind.downcast_ref::<Arc<MessageType<M>>>()).cloned()
        };
        if let Some(kind) = found(&self.kinds.read()) {
            return kind;
        }
        let mut kinds = self.kinds.write();
        if let Some(kind) = found(&kinds) {
            return kind;
        }
        let (io, recorder) = (self.io.clone(), self.recorder.clone());
        let kind = Arc::new(MessageType::<M> { receivers: OnceLock::new(), io, recorder });
        kinds.insert(TypeId::of::<M>(), Registered { kind: Box::new(kind.clone()), name: M::NAME });
        kind
    }

    /// Sends a message again that a log remembers.
    pub(crate) fn resend(
        &self,
        emit: &Emit,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) -> Result<(), DecodeError> {
        match self.resend.read().get(&(emit.fact.app, emit.name.clone())) {
            Some(resend) => resend(emit, lane, turn),
            None => Err(DecodeError {
                what: "a message",
                why: format!("the app does not handle `{}`", emit.name),
            }),
        }
    }

    /// Goes on with a sweep that a log remembers.
    pub(crate) fn resume_sweep(
        &self,
        sweep: &Sweep,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) -> Result<(), DecodeError> {
        let emit = &sweep.waiting.emit;
        match self.resume.read().get(&(emit.fact.app, emit.name.clone())) {
            Some(resume) => resume(sweep, lane, turn),
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
        self.resend.write().insert((receiver.app(), name), resend(receiver));
    }

    /// Adds a receiver, before [`Types::seal`].
    pub(crate) fn receive<M: Message>(&self, name: String, receiver: Arc<dyn Receiver<M>>) {
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
        let (chain, observers) = list.into_iter().partition(|r| r.answers());
        let _ = self.kind::<M>().receivers.set(Receivers { observers, chain });
    }

    /// Names of all types known so far, in order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.kinds.read().values().map(|r| (r.name, ())).collect::<BTreeMap<_, _>>().into_keys().collect()
    }
}
