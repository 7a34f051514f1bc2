//! Who handles what: the types of messages a hive knows, and their receivers.

use crate::cell::Outcome;
use crate::hive::Address;
use crate::hive::batch::{Batch, Source};
use crate::hive::io::IoBees;
use crate::hive::journal::Emit;
use crate::hive::lane::SenderLane;
use crate::hive::turn::Turn;
use crate::message::Message;
use crate::state::image::{DecodeError, decode, encode};
use crate::time::Time;
use parking_lot::{Mutex, RwLock};
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// An app that handles messages of type `M`.
pub(crate) trait Receiver<M: Message>: Send + Sync {
    fn app(&self) -> u16;
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
    /// Whether its app's records go to the journal.
    fn is_journaled(&self) -> bool;
}

/// One type of message on one hive.
pub(crate) struct MessageType<M: Message> {
    receivers: OnceLock<Receivers<M>>,
    io: Arc<IoBees>,
}

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
                if let Some(sink) = &batch.sink {
                    for index in range {
                        sink.unanswered(batch, index)
                    }
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
        match to {
            Address::Io(_, id) => self.io.deliver(id, batch, range, &turn.cause),
            Address::App(app) => match self.receiver_of(app) {
                Some(receiver) => receiver.route(batch, range, None, lane, turn),
                None => turn.hive.nobody_handles(M::NAME),
            },
            Address::Outside => {}
        }
    }

    /// What journaled apps will have to handle of the messages of `range`: all of them, or one.
    pub(crate) fn emits(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        app: Option<u16>,
        at: Option<Time>,
        turn: &mut Turn,
        out: &mut Vec<Emit>,
    ) {
        let (observers, chain) = self.receivers();
        // of a chain only the first: who comes next, that one's record says
        for receiver in observers.iter().chain(chain.iter().take(if app.is_some() { usize::MAX } else { 1 }))
        {
            if !receiver.is_journaled() || app.is_some_and(|app| app != receiver.app()) {
                continue;
            }
            for index in range.clone() {
                let Some(message) = batch.messages.get(index as usize) else { continue };
                if receiver.outcome(message, turn) == Outcome::Cells {
                    out.push(Emit {
                        fact: batch.source.fact(index, receiver.app()),
                        name: M::NAME.to_string(),
                        bytes: encode(message),
                        at,
                        hops: batch.source.hops,
                    })
                }
            }
        }
    }

    pub(crate) fn receiver_of(&self, app: u16) -> Option<&Arc<dyn Receiver<M>>> {
        let (observers, chain) = self.receivers();
        observers.iter().chain(chain).find(|r| r.app() == app)
    }
}

struct Registered {
    kind: Box<dyn Any + Send + Sync>,
    name: &'static str,
}

/// Decodes a message of one type and sends it to one app.
type Resend = fn(&Types, &Emit, Source, &mut Turn) -> Result<(), DecodeError>;

fn resend<M: Message>(
    types: &Types,
    emit: &Emit,
    source: Source,
    turn: &mut Turn,
) -> Result<(), DecodeError> {
    let messages = vec![decode::<M>("a message", &emit.bytes)?];
    let batch = Arc::new(Batch { messages, source, sink: None });
    let (kind, to) = (types.kind::<M>(), emit.fact.app);
    match emit.at {
        Some(at) => turn.hive.timers.after(at, to, &kind, &batch, 0..1, types),
        None => kind.send(&batch, 0..1, Address::App(to), &mut SenderLane::default(), turn),
    }
    Ok(())
}

/// All types of messages of a hive.
pub(crate) struct Types {
    io: Arc<IoBees>,
    kinds: RwLock<HashMap<TypeId, Registered>>,
    /// Timers that handlers have set and not seen fire.
    pub(crate) timers_waiting: AtomicUsize,
    /// By stable name: how to send a message again that a log remembers.
    resend: RwLock<HashMap<&'static str, Resend>>,
    /// Receivers while the hive is being built.
    pending: Mutex<HashMap<TypeId, Box<dyn Any + Send>>>,
}

impl Types {
    pub(crate) fn new(io: Arc<IoBees>) -> Arc<Types> {
        Arc::new(Types {
            io,
            kinds: RwLock::default(),
            timers_waiting: AtomicUsize::new(0),
            resend: RwLock::default(),
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
        let kind = Arc::new(MessageType::<M> { receivers: OnceLock::new(), io: self.io.clone() });
        kinds.insert(TypeId::of::<M>(), Registered { kind: Box::new(kind.clone()), name: M::NAME });
        kind
    }

    /// Sends a message again that a log remembers.
    pub(crate) fn resend(&self, emit: &Emit, source: Source, turn: &mut Turn) -> Result<(), DecodeError> {
        let Some(resend) = self.resend.read().get(emit.name.as_str()).copied() else {
            return Err(DecodeError { what: "a message", why: format!("no app handles `{}`", emit.name) });
        };
        resend(self, emit, source, turn)
    }

    /// Adds a receiver, before [`Types::seal`].
    pub(crate) fn receive<M: Message>(&self, receiver: Arc<dyn Receiver<M>>) {
        self.resend.write().insert(M::NAME, resend::<M>);
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
