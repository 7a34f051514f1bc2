//! Verifies maps: checks that a handler would do nothing for a message dropped by its map.
//!
//! A dropped message never reaches its handler, so a wrongly derived map would silently lose the message. The
//! hive therefore runs the handler for some of these messages, on an instance without state and under a guard
//! that allows no cell, and undoes everything that the handler did.

use crate::app::{Handlers, Handles};
use crate::failure::Failed;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Local;
use crate::hive::dispatch::turn::Turn;
use crate::hive::dispatch::types::handler::{Handler, place};
use crate::hive::message::batch::Batch;
use crate::hive::run::transaction::{ended, roll_back, unwanted};
use crate::message::{Error, ErrorKind, Message};
use crate::state::any;
use crate::state::guard::Held;
use crate::view::{self, Published as _};
use std::sync::Arc;

/// Runs the handler for a message dropped by the map, and undoes everything that the handler did. If the
/// handler does anything (touches a cell, emits, answers, postpones, fails or panics), returns the error with
/// which the message must fail.
///
/// Hand-written maps are not verified, because they may drop messages on which the handler would act.
#[cold]
pub(crate) fn dropped_wrongly<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime>,
    batch: &Batch<M>,
    index: u32,
    turn: &mut Turn,
) -> Option<Error> {
    if A::REPORT.get(A::HANDLER).is_some_and(|report| report.kind == "custom") {
        return None;
    }
    let message = batch.get(index)?;

    let (mut instance, settings) =
        turn.local::<Local>(app.index).stateless.take().unwrap_or_else(|| app.stateless());
    let settings = app.up_to_date(&mut *instance, settings);

    let now = turn.moment();
    let opened = app.views.as_ref().filter(|_| A::PUBLISHED != 0).map(|views| view::open(views, now));

    let ctx = turn.ctx();
    ctx.now = now;
    ctx.origin = batch.source.origin;
    ctx.sender = batch.source.sender;
    ctx.chance = batch.source.chance_of(index as u64);
    ctx.postponed = None;
    // the map is verified, not the hop limit, which would otherwise be that of the previous run
    ctx.out.begin(0);

    let (before, mark) = (ctx.out.len(), ctx.out.mark());
    let held = Held::strict(app.seed, app.whole, &[]);
    let result = ended::<A, M>(any::of(&mut *instance), message, ctx, &held);
    drop(held);
    drop(opened);

    let did = match result.map_err(|failed| *failed) {
        _ if ctx.out.len() > before => Some("emits a message"),
        _ if ctx.postponed.is_some() => Some("postpones it"),
        Ok(answer) => {
            let answers = A::ANSWERS && answer.is_some();
            unwanted(answer);
            answers.then_some("answers it")
        }
        // the view was too old to be read, so the handler's effect is unknown
        Err(Failed::Platform(error)) if error.kind() == ErrorKind::Stale => None,
        Err(Failed::Platform(error)) => {
            roll_back::<A>(any::of(&mut *instance), ctx, mark);
            turn.local::<Local>(app.index).stateless = Some((instance, settings));
            return Some(error);
        }
        Err(Failed::Handler(error)) => {
            unwanted(error);
            Some("returns an error")
        }
    };

    roll_back::<A>(any::of(&mut *instance), ctx, mark);
    turn.local::<Local>(app.index).stateless = Some((instance, settings));
    let text = |did| format!("the map drops this message, but the handler {did}{}", place::<A, M>());
    did.map(|did| Error::of(ErrorKind::Unmapped, text(did)))
}

/// Verifies a visit (message `index` of `batch`) that a sweep skips because the map drops the message. If the
/// map is wrong, the visit becomes a dead letter.
pub(crate) fn verify_visit<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime>,
    batch: &Batch<M>,
    index: u32,
    turn: &mut Turn,
) {
    let every = turn.hive.verify_maps;
    let handler = Handler::of::<A, M>(app);
    if every == 0 || !(handler.counters.drops_wrongly() || index.is_multiple_of(every)) {
        return;
    }

    if let Some(error) = dropped_wrongly::<A, M>(app, batch, index, turn) {
        report(&handler, &error);
        handler.fail(turn.hive, batch, index, None, &error)
    }
}

/// Logs an error for the first message that a map drops but the handler would act on.
#[cold]
pub(crate) fn report(handler: &Handler, error: &Error) {
    if handler.counters.found_wrong_drop() {
        let Handler { app_name: app, name: handler, message, .. } = *handler;
        tracing::error!(
            app,
            handler,
            message,
            %error,
            "the derived map drops messages that the handler would act on; they now fail with an error \
             (this is a bug in Beehive; please report it with the handler's body)"
        );
    }
}
