//! The results of a run of transactions: outputs that are routed, answers, and messages that are passed on or
//! postponed.

use crate::app::{Handlers, Handles};
use crate::failure::RequestError;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::outside_lanes::{Admission, Numbers};
use crate::hive::consensus::journal::{AppId, HandlerId, MessageId};
use crate::hive::dispatch::effects::{RouteContext, Sink};
use crate::hive::dispatch::probe;
use crate::hive::dispatch::types::handler::Handler;
use crate::hive::dispatch::types::message_types::MessageType;
use crate::hive::message::batch::{Address, AnswerRun, Batch, Chain, Messages, Observed, STRIDE, Source};
use crate::hive::message::trace;
use crate::hive::run::postpone::postpone;
use crate::hive::run::transaction::Run;
use crate::message::{Error, Message};
use crate::time::Time;
use std::sync::Arc;

/// The results of a run of transactions, except for changes of state and outputs.
pub(crate) struct Executed<M: Message> {
    /// The answers, in the order of the messages.
    pub(super) answers: AnswerRun<M>,
    /// Messages that the handler could have answered but did not. They are passed on to the next app in the
    /// answer chain.
    pub(super) passed: Vec<u32>,
    /// The results of a handler that cannot answer. Collected only if a requester counts them.
    pub(super) observed: Vec<(u32, Observed<M>)>,
    /// The postponed messages, each with the time at which the handler gets it again.
    pub(super) postponed: Vec<(u32, Time)>,
    /// Random seed of the first message. The seeds of emitted messages derive from it.
    pub(super) chance: u64,
    /// The causal chain of the first message. The emitted messages continue it.
    pub(super) chain: Chain,
}

impl<M: Message> Default for Executed<M> {
    fn default() -> Self {
        Executed {
            answers: AnswerRun::<M>::new(),
            passed: Vec::new(),
            observed: Vec::new(),
            postponed: Vec::new(),
            chance: 0,
            chain: Chain::default(),
        }
    }
}

impl<M: Message> Executed<M> {
    /// Appends the results of a later run.
    pub(crate) fn extend(&mut self, later: Executed<M>) {
        if self.chance == 0 {
            self.chance = later.chance;
            self.chain = later.chain
        }
        self.answers.extend(later.answers);
        self.passed.extend(later.passed);
        self.observed.extend(later.observed);
        self.postponed.extend(later.postponed)
    }

    /// Checks whether the handler has postponed any message.
    pub(crate) fn postpones(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// Records an error as a message's result. `position` is the app's position in the answer chain, if it is
    /// in the chain.
    #[cold]
    pub(crate) fn end_with(&mut self, batch: &Batch<M>, index: u32, error: Error, position: Option<u16>) {
        self.chain = batch.source.chain.after(index);
        match position {
            Some(_) if batch.sink.is_some() => self.answers.push(Err(RequestError::of(error))),
            Some(_) => {}
            None => self.observed.push((index, Err(RequestError::of(error)))),
        }
    }
}

/// Routes a run's outputs in order. If a stateless handler ran for a message from outside, `made_of` is that
/// message, and the output ids derive from its id. `chance` and `chain` belong to the first message of the
/// run.
fn hand_over(
    run: &Run,
    handler: usize,
    made_of: Option<(MessageId, HandlerId)>,
    batch: &dyn Messages,
    (chance, chain): (u64, Chain),
    cx: &mut RouteContext,
) {
    let app = run.app.index;

    let mut outputs = cx.turn.take_outputs();
    let from = batch.source();

    let source = Source {
        origin: from.origin,
        sender: Address::App(AppId(app)),
        bee: run.bee,
        handler: Some(handler as u16),
        numbers: Numbers::NONE,
        hops: from.hops + 1,
        chain,
        // messages in the same batch differ in their index, which `chance_of` adds to the seed
        chance: chance.rotate_left(32).wrapping_add(STRIDE),
        is_logged: false,
    };

    cx.turn.count_emits(app, handler, &outputs);
    match (cx.held(), made_of) {
        (Some(effects), _) => outputs.freeze(source, None, &mut effects.numbers, Admission::Inside),
        (None, Some((message_id, by_handler))) => {
            let by = batch.admitted().map_or(Admission::Inside, Admission::Part);
            outputs.freeze(source, None, &mut Numbers::parts(message_id, by_handler), by)
        }
        (None, None) => outputs.freeze(source, None, &mut { Numbers::NONE }, Admission::Inside),
    }
    outputs.route(app, cx);

    cx.turn.give_back(outputs)
}

/// Releases a run's results: routes the outputs in order, sends the answers, and passes messages on. If `cx`
/// holds effects, these results are held as well.
pub(crate) fn release<A: Handlers + Handles<M>, M: Message>(
    run: &Run,
    batch: &Arc<Batch<M>>,
    done: Executed<M>,
    cx: &mut RouteContext,
) {
    release_made_of::<A, M>(run, None, batch, done, cx)
}

/// Like [`release`], but if `made_of` is `Some`, a stateless handler ran for that message from outside, and
/// the output ids derive from its id and the handler's.
pub(crate) fn release_made_of<A: Handlers + Handles<M>, M: Message>(
    run: &Run,
    made_of: Option<(MessageId, HandlerId)>,
    batch: &Arc<Batch<M>>,
    mut done: Executed<M>,
    cx: &mut RouteContext,
) {
    if !cx.turn.ctx().out.is_empty() {
        hand_over(run, A::HANDLER, made_of, &**batch, (done.chance, done.chain), cx)
    }

    if done.postpones() {
        postpone_all(&Handler::of::<A, M>(run.app), batch, run.position, &mut done, cx)
    }

    finish(batch, run.position, done, cx)
}

/// Postpones messages. A message that cannot be postponed fails with an error.
#[cold]
fn postpone_all<M: Message>(
    handler: &Handler,
    batch: &Arc<Batch<M>>,
    position: Option<u16>,
    done: &mut Executed<M>,
    cx: &mut RouteContext,
) {
    // `Ctx::postpone` has counted these timers in the outputs. If the run emitted nothing, that count has not
    // been reset yet
    cx.turn.ctx().out.discard();

    let Some(onward) = cx.turn.hive.types.logged.onward(handler.app, handler.message_type) else { return };
    let messages: Arc<dyn Messages> = batch.clone();
    for once in std::mem::take(&mut done.postponed) {
        if let Err(error) = postpone(handler, &onward, &messages, once, position, cx) {
            done.end_with(batch, once.0, error, position)
        }
    }
}

/// Sends the answers to the requester and passes unanswered messages on.
pub(crate) fn finish<M: Message>(
    batch: &Arc<Batch<M>>,
    position: Option<u16>,
    done: Executed<M>,
    cx: &mut RouteContext,
) {
    if trace::is_on() && !done.answers.is_empty() {
        trace::answered(M::NAME, done.chain, done.answers.len())
    }

    if batch.sink.is_some() && !(done.observed.is_empty() && done.answers.is_empty()) {
        match &mut cx.sink {
            Sink::Held(effects) => {
                let (batch, cause) = (batch.clone(), cx.turn.cause.clone());
                effects.hold_report(move |_| report(&batch, done.observed, done.answers, &cause))
            }
            Sink::Now => report(batch, done.observed, done.answers, &cx.turn.cause),
        }
    }

    if let Some(position) = position
        && !done.passed.is_empty()
    {
        let kind: Arc<MessageType<M>> = cx.turn.hive.types.kind::<M>();
        for index in done.passed {
            kind.pass_on_handled(batch, index, position, cx)
        }
    }
}

/// Reports results and answers to the requester.
fn report<M: Message>(
    batch: &Batch<M>,
    observed: Vec<(u32, Observed<M>)>,
    answers: AnswerRun<M>,
    cause: &Option<Arc<Cause>>,
) {
    let Some(sink) = &batch.sink else { return };

    for (index, result) in observed {
        sink.observed(batch, index, result)
    }

    if !answers.is_empty() {
        sink.answers(answers, cause);
    }
}

/// Fails a message with an error that its handler did not return, such as an exceeded limit.
pub(crate) fn end_with_error<M: Message>(
    handler: &Handler,
    batch: &Arc<Batch<M>>,
    index: u32,
    position: Option<u16>,
    error: &Error,
    cx: &mut RouteContext,
) {
    handler.fail(cx.turn.hive, &**batch, index, position, error);

    if cx.turn.hive.probe().is_some() {
        probe::ended_unhandled(handler, &**batch, index, cx)
    }

    let mut done = Executed::default();
    done.end_with(batch, index, error.clone(), position);
    finish(batch, position, done, cx)
}
