//! An app as a receiver of one type of message: map, route, run.

use crate::app::{Handlers, Handles};
use crate::cell::{CellSet, Outcome};
use crate::hive::admission::{Admitted, Numbers};
use crate::hive::batch::Batch;
use crate::hive::bee::{Bee, Body, Delivery, Local};
use crate::hive::care::{Begun, set_aside};
use crate::hive::delivery::deliver;
use crate::hive::errand::{Errand, Errands};
use crate::hive::gate::Gate;
use crate::hive::journal::{Emit, Fact};
use crate::hive::journaled::run_journaled;
use crate::hive::lane::SenderLane;
use crate::hive::runtime::AppRuntime;
use crate::hive::traffic::Peer;
use crate::hive::transaction::{Executed, Run, execute, fail, let_go, release, release_made_of};
use crate::hive::turn::{Stateless, Turn};
use crate::hive::types::Receiver;
use crate::hive::{unowned, unwinding, watched, witness};
use crate::limits;
use crate::message::{Error, ErrorKind, Message};
use crate::state::image::encode;
use crate::time::Time;
use std::collections::HashSet;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct AppReceiver<A: Handlers, M: Message> {
    app: Arc<AppRuntime<A>>,
    kind: std::marker::PhantomData<fn(M)>,
}

impl<A: Handlers + Handles<M>, M: Message> AppReceiver<A, M> {
    pub(crate) fn new(app: Arc<AppRuntime<A>>) -> Arc<Self> {
        Arc::new(AppReceiver { app, kind: std::marker::PhantomData })
    }
}

impl<A: Handlers + Handles<M>, M: Message> Receiver<M> for AppReceiver<A, M> {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn handler(&self) -> usize {
        A::HANDLER
    }

    fn answers(&self) -> bool {
        A::ANSWERS
    }

    fn emits(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        at: Option<Time>,
    ) -> Vec<Emit> {
        if self.app.link.is_none() {
            return Vec::new();
        }
        let mut mapper = self.app.mapper(batch.source.origin);
        let mut emits = Vec::new();
        for index in range {
            let Some(message) = batch.messages.get(index as usize) else { break };
            mapper.clear();
            if map::<A, M>(message, &mut mapper) != Outcome::Drop {
                let name = remembered_name::<A, M>();
                emits.push(emit_of(
                    batch,
                    index,
                    message,
                    batch.source.fact(index, self.app.index),
                    name,
                    position,
                    at,
                ))
            }
        }
        emits
    }

    fn outcome(&self, message: &M, turn: &Turn) -> Outcome {
        let mut mapper = self.app.mapper(turn.hive.id);
        map::<A, M>(message, &mut mapper)
    }

    fn route(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let app = &self.app;
        let mut mapper = app.mapper(batch.source.origin);
        // neighbours with the same outcome travel together
        let mut run = Neighbours { outcome: Outcome::Drop, cells: CellSet::new(), first: range.start };
        let mut ahead = Ahead { claimed: range.start, end: range.end };
        for index in range.clone() {
            let Some(message) = batch.messages.get(index as usize) else { break };
            mapper.clear();
            let outcome = map::<A, M>(message, &mut mapper);
            if outcome != run.outcome || mapper.cells() != &run.cells[..] {
                self.hand_over(batch, &run, index, position, &mut ahead, lane, turn);
                run.first = index;
                run.outcome = outcome;
                run.cells.clear();
                run.cells.extend_from_slice(mapper.cells());
            }
        }
        self.hand_over(batch, &run, range.end, position, &mut ahead, lane, turn);
    }
}

struct Neighbours {
    outcome: Outcome,
    cells: CellSet,
    first: u32,
}

/// How far the messages of a batch have been looked through for cells without a known owner.
struct Ahead {
    /// Owners of what is before it have been asked for.
    claimed: u32,
    end: u32,
}

/// Runs the derived map. A map that panics (an overflow, say, in a build that checks for it) leaves the message to the
/// handler, without cells: it will fail there, where the error has somebody to go to.
#[inline(always)]
pub(crate) fn map<A: Handlers + Handles<M>, M: Message>(
    message: &M,
    mapper: &mut crate::mapper::Mapper,
) -> Outcome {
    match unwinding::catch(AssertUnwindSafe(|| A::map(message, mapper))) {
        Ok(()) => mapper.outcome(),
        Err(_) => {
            mapper.clear();
            Outcome::Stateless
        }
    }
}

impl<A: Handlers + Handles<M>, M: Message> AppReceiver<A, M> {
    /// A run has ended before `end`.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn hand_over(
        &self,
        batch: &Arc<Batch<M>>,
        run: &Neighbours,
        end: u32,
        position: Option<u16>,
        ahead: &mut Ahead,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let count = end - run.first;
        if count == 0 {
            return;
        }
        turn.meets(&self.app.handlers[A::HANDLER]);
        let is_stateless = run.outcome == Outcome::Stateless;
        let leaves = match turn.stateless {
            Stateless::Here => false,
            // what the sender has left already comes first
            Stateless::InOrder => is_stateless || lane.has_errands(self.app.index),
            Stateless::Apart => is_stateless,
        };
        if leaves {
            return self.leave(batch, run.first..end, position, lane, turn);
        }
        // looked at in this order: what an errand puts off is put off before the errand is done
        if turn.is_put_off(lane) {
            return self.put_off(batch, run.first..end, position, lane, turn);
        }
        match run.outcome {
            Outcome::Drop => {
                self.app.handlers[A::HANDLER].dropped.fetch_add(count as u64, Ordering::Relaxed);
                if let Some(position) = position {
                    let kind = turn.hive.types.kind::<M>();
                    kind.pass_on(batch, run.first..end, position, lane, turn)
                }
            }
            Outcome::Stateless => self.run_stateless(batch, run.first..end, position, lane, turn),
            Outcome::Cells if !self.app.may_own(&run.cells) => {
                let remembered = batch.admitted.is_none() && batch.source.numbers.lane != 0;
                self.refuse(batch, run.first..end, position, remembered, lane, turn)
            }
            Outcome::Cells => {
                if turn.hive.witness.is_some() {
                    witness::due(&self.app, batch, run.first..end, turn)
                }
                let delivery = Delivery {
                    run: run_delivery::<A, M>,
                    batch: batch.clone(),
                    cause: turn.cause.clone(),
                    first: run.first,
                    count,
                    position,
                    cells: run.cells.clone(),
                };
                if turn.gate.is_some() {
                    return self.hold(batch, delivery, turn);
                }
                self.open(batch);
                let mut missing = |cells: &CellSet| self.missing(batch, run.first, cells, ahead);
                if deliver(&self.app, delivery, lane, turn, &mut missing) {
                    self.app.handlers[A::HANDLER].waited.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// A delivery of the batch has to be committed.
    fn open(&self, batch: &Batch<M>) {
        if let Some(admitted) = &batch.admitted
            && self.app.link.is_some()
        {
            admitted.open()
        }
    }

    /// Delivers when the record is committed that says so. Until then nothing is open: a record that is refused is made
    /// again, and what it held is thrown away.
    fn hold(&self, batch: &Arc<Batch<M>>, delivery: Delivery<A>, turn: &mut Turn) {
        let range = delivery.first..delivery.first + delivery.count;
        let emits = self.emits(batch, range.clone(), delivery.position, None);
        let (receiver, batch) = (Self::new(self.app.clone()), batch.clone());
        if let Some(gate) = &mut turn.gate {
            gate.emits.extend(emits);
            gate.hold(move |lane, turn| {
                // others may have taken the last cells meanwhile
                if !receiver.app.may_own(&delivery.cells) {
                    return receiver.refuse(&batch, range, delivery.position, true, lane, turn);
                }
                receiver.open(&batch);
                deliver(&receiver.app, delivery, lane, turn, &mut |cells| Some(vec![cells.clone()]));
            })
        }
    }

    /// Answers messages with an error because the app has as many cells as it may have. `remembered`: a log has them.
    #[cold]
    fn refuse(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        remembered: bool,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let max = A::OPTIONS.cells.unwrap_or_default();
        let text = format!("the app has {max} cells; `#[app(cells = {max})]` allows no more");
        let error = Error::of(ErrorKind::Limit, text);
        let says_so = remembered && self.app.link.is_some() && turn.gate.is_none();
        for index in range {
            let fact = batch.source.fact(index, self.app.index);
            if says_so {
                turn.gate = Some(Gate::new(Numbers::parts(fact, A::HANDLER)))
            }
            end_with_error::<A, M>(&self.app, batch, index, position, &error, lane, turn);
            if says_so {
                consume_gate(fact, A::HANDLER, None, lane, turn)
            }
        }
    }

    /// The owner of `cells`, those of message `first`, is not known: all sets of cells of which the same is to be said, in
    /// this message and those after it. So they are asked for at once. Nothing if they have been asked for already.
    #[cold]
    fn missing(
        &self,
        batch: &Arc<Batch<M>>,
        first: u32,
        cells: &CellSet,
        ahead: &mut Ahead,
    ) -> Option<Vec<CellSet>> {
        if first < ahead.claimed {
            return None;
        }
        let mut sets = vec![cells.clone()];
        let mut known = HashSet::from([cells.clone()]);
        let mut mapper = self.app.mapper(batch.source.origin);
        let mut left = self.app.cells_left().saturating_sub(cells.len());
        ahead.claimed = first + 1;
        for index in first + 1..ahead.end {
            let Some(message) = batch.messages.get(index as usize) else { break };
            if sets.len() >= limits::CLAIMS_PER_PROPOSAL_MAX {
                break;
            }
            mapper.clear();
            if map::<A, M>(message, &mut mapper) == Outcome::Cells
                && self.app.owner(mapper.cells()).is_none()
                && known.insert(CellSet::from_slice(mapper.cells()))
            {
                // what is too much is not asked for before it is looked at by itself
                let Some(fewer) = left.checked_sub(mapper.cells().len()) else { break };
                left = fewer;
                sets.push(CellSet::from_slice(mapper.cells()))
            }
            ahead.claimed = index + 1
        }
        Some(sets)
    }

    /// Leaves messages to those who run bees. Later ones to the same app follow, or they would overtake what these cause.
    fn leave(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let (receiver, batch) = (Self::new(self.app.clone()), batch.clone());
        if let Some(admitted) = &batch.admitted {
            admitted.open()
        }
        let errand = Errand {
            lane: lane.share(),
            cause: turn.cause.clone(),
            route: Box::new(move |lane, turn| {
                receiver.route(&batch, range, position, lane, turn);
                if let Some(admitted) = &batch.admitted {
                    admitted.close()
                }
            }),
        };
        match turn.stateless {
            Stateless::Apart => Errands::of(self.app.index).leave(errand, turn),
            Stateless::InOrder | Stateless::Here => lane.leave(self.app.index, errand, turn),
        }
    }

    /// Routes when the stack is free again: it has been used up, or something waits that it has been used up for. The limit
    /// on hops still ends a cycle.
    #[cold]
    fn put_off(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let receiver = Self::new(self.app.clone());
        turn.put_off(self.app.index, batch, lane, move |batch, lane, turn| {
            receiver.route(batch, range, position, lane, turn)
        })
    }

    fn run_stateless(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let app = &self.app;
        if turn.depth >= limits::STATELESS_DEPTH_MAX {
            return self.put_off(batch, range, position, lane, turn);
        }
        if app.link.is_none() {
            return self.run_stateless_now(batch, range, position, lane, turn);
        }
        match turn.gate.as_mut().map(|gate| gate.takes(range.len())) {
            Some(true) => self.run_stateless_now(batch, range, position, lane, turn),
            Some(false) => turn.hive.cycle(batch.source.hops, A::NAME, M::NAME),
            None if batch.source.numbers.lane == 0 => {
                self.run_stateless_now(batch, range, position, lane, turn)
            }
            // what is made of a message from outside is known by that message, so they are run one by one
            None if batch.admitted.is_some() => {
                for index in range {
                    let fact = batch.source.fact(index, app.index);
                    let Some(link) = &app.link else { break };
                    if link.unowned.has_consumed(fact, A::HANDLER) {
                        continue;
                    }
                    let handler = (app.index, A::HANDLER);
                    match link.care.begin(turn.hive, turn.slot, handler, fact, None) {
                        Begun::SetAside => {
                            self.set_aside(batch, index, position, batch.admitted.as_ref(), lane, turn)
                        }
                        _begun => self.run_stateless_now(batch, index..index + 1, position, lane, turn),
                    }
                }
            }
            None => self.consume_stateless(batch, range, position, lane, turn),
        }
    }

    /// Runs it for messages that a log remembers, whose time has come: a record says what is made of them.
    fn consume_stateless(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        for index in range {
            let fact = batch.source.fact(index, self.app.index);
            let (care, handler) =
                (self.app.link.as_ref().map(|link| &link.care), (self.app.index, A::HANDLER));
            let begun = care.map(|care| care.begin(turn.hive, turn.slot, handler, fact, None));
            if let Some(Begun::SetAside) = begun {
                self.set_aside(batch, index, position, None, lane, turn);
                continue;
            }
            turn.gate = Some(Gate::new(Numbers::parts(fact, A::HANDLER)));
            self.run_stateless_now(batch, index..index + 1, position, lane, turn);
            consume_gate(fact, A::HANDLER, None, lane, turn)
        }
    }

    /// A message that has ended the process twice is not run: a record says that it is done.
    #[cold]
    fn set_aside(
        &self,
        batch: &Arc<Batch<M>>,
        index: u32,
        position: Option<u16>,
        admitted: Option<&Arc<Admitted>>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let fact = batch.source.fact(index, self.app.index);
        turn.gate = Some(Gate::new(Numbers::parts(fact, A::HANDLER)));
        end_with_error::<A, M>(&self.app, batch, index, position, &set_aside(), lane, turn);
        consume_gate(fact, A::HANDLER, admitted, lane, turn)
    }

    fn run_stateless_now(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        if range.len() > 1 && watched::is_on() {
            // what each message causes is told apart
            return range
                .for_each(|index| self.run_stateless_now(batch, index..index + 1, position, lane, turn));
        }
        let app = &self.app;
        let kept = turn.local::<Local<A>>(app.index).stateless.take();
        let (mut instance, mut settings) = kept.unwrap_or_else(|| {
            let (instance, settings) = app.settings.fresh();
            (Box::new(instance), settings)
        });
        if A::HAS_SETTINGS && settings != app.settings.version() {
            settings = app.settings.adopt(&mut instance)
        }
        turn.depth += 1;
        let outside = batch.admitted.is_some() && turn.gate.is_none();
        let made_of = outside.then(|| batch.source.fact(range.start, app.index));
        let run = Run { cells: &[], position, now: turn.moment() };
        let done = execute::<A, M>(app, None, &mut instance, batch, range.clone(), run, turn, None);
        turn.local::<Local<A>>(app.index).stateless = Some((instance, settings));
        match made_of {
            // then a record says so, and what is made of it until then
            Some(fact) if done.puts_off() => {
                turn.gate = Some(Gate::new(Numbers::parts(fact, A::HANDLER)));
                release(app, None, batch, position, done, lane, turn);
                consume_gate(fact, A::HANDLER, batch.admitted.as_ref(), lane, turn)
            }
            None if turn.gate.is_some() => self.release_held(batch, range, position, done, lane, turn),
            _ => release_made_of(made_of, app, None, batch, position, done, lane, turn),
        }
        turn.depth -= 1;
    }
}

impl<A: Handlers + Handles<M>, M: Message> AppReceiver<A, M> {
    /// Lets go what a stateless handler left into the record of its sender. What cannot be encoded fails that handler, and
    /// nobody else.
    fn release_held(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        done: Executed<M>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let (app, depth, mark) = (&self.app, turn.depth, turn.gate.as_ref().map(|gate| gate.mark()));
        let released =
            unwinding::catch(AssertUnwindSafe(|| release(app, None, batch, position, done, lane, turn)));
        let (Err(panic), Some(mark)) = (released, mark) else { return };
        turn.depth = depth;
        turn.ctx().out.discard();
        if let Some(gate) = &mut turn.gate {
            gate.rollback(mark)
        }
        if range.len() > 1 {
            // the others are not to blame; they have changed nothing, so they are run again
            turn.depth -= 1;
            range.for_each(|index| self.run_stateless_now(batch, index..index + 1, position, lane, turn));
            return turn.depth = depth;
        }
        let error = Error::of(ErrorKind::Panicked, unwinding::text(&*panic));
        let _ = unwinding::catch(AssertUnwindSafe(|| drop(panic)));
        end_with_error::<A, M>(app, batch, range.start, position, &error, lane, turn)
    }
}

/// A message ends with an error that is not its handler's.
pub(crate) fn end_with_error<A: Handlers + Handles<M>, M: Message>(
    app: &AppRuntime<A>,
    batch: &Arc<Batch<M>>,
    index: u32,
    position: Option<u16>,
    error: &Error,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    fail::<A, M>(app, turn.hive, batch, index, position, error);
    if turn.hive.witness.is_some() {
        witness::ended_before(app, batch, index, turn)
    }
    let mut done = Executed::default();
    done.end_with(batch, index, error.clone(), position);
    let_go(batch, position, done, lane, turn)
}

/// Has a record say that handler `handler` consumed a message, and made of it what is behind the gate.
fn consume_gate(
    fact: Fact,
    handler: usize,
    admitted: Option<&Arc<Admitted>>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let Some(mut gate) = turn.close_gate(lane) else { return };
    if gate.size() > limits::RECORD_BYTES_MAX {
        let bytes = gate.size();
        tracing::error!(bytes, "what a stateless handler emitted is more than a record holds; it is dropped");
        return unowned::consume(fact, handler, admitted, Vec::new(), Vec::new(), lane, turn);
    }
    let (emits, notes) = (std::mem::take(&mut gate.emits), std::mem::take(&mut gate.notes));
    let mut steps = gate.into_steps();
    if !notes.is_empty() {
        steps.insert(0, Box::new(move |_, turn| turn.note(notes)))
    }
    unowned::consume(fact, handler, admitted, emits, steps, lane, turn)
}

/// The name by which a log knows how to bring a message of type `M` to app `A`. Those that every app has are told apart
/// by their handler.
pub(crate) fn remembered_name<A: Handlers + Handles<M>, M: Message>() -> String {
    match M::NAME.starts_with("beehive::") {
        true => format!("{}@{}", M::NAME, A::REPORT.get(A::HANDLER).map_or("", |report| report.name)),
        false => M::NAME.to_string(),
    }
}

/// What a log is to remember of a message.
pub(crate) fn emit_of<M: Message>(
    batch: &Batch<M>,
    index: u32,
    message: &M,
    fact: Fact,
    name: String,
    position: Option<u16>,
    at: Option<Time>,
) -> Emit {
    Emit {
        fact,
        name,
        bytes: encode(message),
        at,
        is_sweep: false,
        position,
        origin: batch.source.origin,
        sender: batch.source.sender,
        hops: batch.source.hops,
        chain: batch.source.chain.number(index),
        chance: batch.source.chance_of(index as u64),
    }
}

pub(crate) fn run_delivery<A: Handlers + Handles<M>, M: Message>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    if body.tail.is_some() {
        return run_journaled::<A, M>(bee, body, delivery, turn);
    }
    // the function that runs a delivery knows the type of its batch
    let Ok(batch) = (delivery.batch as Arc<dyn std::any::Any + Send + Sync>).downcast::<Batch<M>>() else {
        return;
    };
    let app = &bee.app;
    turn.cause = delivery.cause;
    let range = delivery.first..delivery.first + delivery.count;
    let began = body.traffic.count(Peer::of(&batch.source), delivery.count).then(|| turn.hive.now());
    body.now = body.now.max(turn.moment());
    let run = Run { cells: &delivery.cells, position: delivery.position, now: body.now };
    // what each message causes is told apart where somebody watches
    let apart = watched::is_on() && range.len() > 1;
    let (last, range) = if apart { (range.end - 1, range.start..range.start + 1) } else { (0, range) };
    let mut next = range.end;
    let mut done = execute::<A, M>(app, Some(bee.id), &mut body.app, &batch, range, run, turn, None);
    while apart && next <= last {
        release(app, Some(bee.id), &batch, delivery.position, done, &mut body.lane, turn);
        done = execute::<A, M>(app, Some(bee.id), &mut body.app, &batch, next..next + 1, run, turn, None);
        next += 1
    }
    if let Some(began) = began {
        body.traffic.timed(delivery.count, turn.hive.now().since(began))
    }
    release(app, Some(bee.id), &batch, delivery.position, done, &mut body.lane, turn);
    turn.cause = None;
}
