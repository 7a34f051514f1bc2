//! These tests check that each assertion in `bee/` fires when its invariant is broken, and stays silent in
//! the nearest valid case.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::registry::{ColonyId, LocalRegistry};
use crate::hive::dispatch::turn::Runnable;
use crate::hive::dispatch::turn::tests::in_a_turn;
use crate::state::ConfigSource;
use crate::state::column::State;
use crate::{App, Dict, Message, handlers};
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[derive(Message)]
pub(crate) struct Add(pub(crate) u64);

#[derive(App)]
pub(crate) struct Counts {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counts {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) {
        *self.counts.entry(msg.0).or_default() += 1
    }
}

const CELL: CellId = CellId(7);

/// An app that has no bees and belongs to no hive.
pub(crate) fn app() -> Arc<AppRuntime> {
    let source = ConfigSource::new(Counts::NAME, Default::default());
    let prototype = Counts::configured(&source).expect("the app has no settings");
    let settings = (Default::default(), 1);
    AppRuntime::new(
        (0, 5),
        prototype,
        settings,
        (Arc::new(LocalRegistry::default()), ColonyId(1)),
        (Vec::new(), None),
        (crate::view::Source::default(), |_, _, _| ()),
    )
}

/// A bee that owns [`CELL`].
fn bee(app: &Arc<AppRuntime>, id: u64) -> Arc<Bee> {
    Bee::new(app, BeeId(id), &[CELL], app.body(None))
}

/// Freezes an idle bee and drops its body.
fn freeze(bee: &Arc<Bee>) {
    let frozen = std::pin::pin!(bee.freeze()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(frozen, Poll::Ready(Some(_))), "an idle bee is frozen at once");
}

#[test]
#[cfg_attr(debug_assertions, should_panic = "still leads to a living bee")]
fn a_cell_of_a_living_bee_is_not_routed_to_another() {
    let app = app();
    app.routes.set(CELL, &bee(&app, 1));
    app.routes.set(CELL, &bee(&app, 2))
}

#[test]
fn a_cell_of_a_bee_that_was_taken_over_is_routed_to_its_heir() {
    let app = app();
    let (from, into) = (bee(&app, 1), bee(&app, 2));
    app.routes.set(CELL, &from);
    app.routes.set(CELL, &from);
    freeze(&from);
    freeze(&into);
    assert_eq!(into.take_over(&from), [CELL]);
    app.routes.set(CELL, &into);
    assert!(app.routes.leads_to(CELL, &into));
}

#[test]
#[cfg_attr(debug_assertions, should_panic = "only a frozen bee is thawed")]
fn a_bee_that_runs_is_not_thawed() {
    let app = app();
    in_a_turn(|turn| bee(&app, 1).thaw(app.body(None), turn))
}

#[test]
#[cfg_attr(debug_assertions, should_panic = "one that is gone stays gone")]
fn a_bee_that_is_gone_is_not_thawed() {
    let app = app();
    let (from, into) = (bee(&app, 1), bee(&app, 2));
    freeze(&from);
    into.take_over(&from);
    in_a_turn(|turn| from.thaw(app.body(None), turn))
}

#[test]
#[cfg_attr(debug_assertions, should_panic = "only while it is frozen and its body is held by the queen")]
fn a_bee_that_may_run_is_not_taken_over() {
    let app = app();
    bee(&app, 2).take_over(&bee(&app, 1));
}

#[test]
#[cfg_attr(debug_assertions, should_panic = "outputs are delivered before the body is given back")]
fn a_body_is_not_given_back_before_its_outputs_are_delivered() {
    let app = app();
    in_a_turn(|turn| {
        turn.ctx().emit(Add(1));
        bee(&app, 1).run(turn)
    })
}

#[test]
fn a_body_without_outputs_is_given_back() {
    let app = app();
    let bee = bee(&app, 1);
    in_a_turn(|turn| bee.clone().run(turn));
    assert!(bee.peek(|_| ()).is_some());
}
