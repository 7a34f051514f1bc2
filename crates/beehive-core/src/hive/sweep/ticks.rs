//! Fires a hive's timers: one task sleeps until the next timer is due. Also starts the ticks of `#[every]`
//! handlers.

use crate::app::{Handlers, Handles};
use crate::hive::admission::credits::{Cause, Credits};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::delivery::RunDelivery;
use crate::hive::consensus::journal::AppId;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{Place, Stateless, Turn};
use crate::hive::message::batch::{Address, Batch, Source};
use crate::hive::sweep::tick_visits::TickVisits;
use crate::hive::sweep::unlogged_sweep::{Pace, Visit, paced};
use crate::key::Key;
use crate::message::{Each, Tick};
use crate::time::Time;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Fires timers when they are due, until the hive is over.
pub(crate) async fn run(hive: Arc<HiveInner>) {
    loop {
        // create these futures before the checks below, so that a notification after the checks is not lost
        let (sooner, ended) = (hive.timers.sooner.notified(), hive.ended.notified());
        if hive.is_over() {
            return;
        }

        let now = hive.now();
        let (fired, next) = hive.timers.take_due(now, &hive.in_flight);
        if let Some((_under_way, fires)) = fired {
            Turn::with(&hive, Place::Runners, |turn| {
                turn.stateless = Stateless::InOrder;
                fires.into_iter().for_each(|fire| fire(turn))
            });
            continue;
        }

        let wait = next.map_or(Duration::from_secs(3600), |at| at.since(now));
        tokio::select! {
            biased;
            () = hive.platform.sleep(wait) => {}
            () = sooner => {}
            () = ended => {}
        }
    }
}

/// Returns the source of a tick.
fn source(hive: &HiveInner, now: Time) -> Source {
    Source::outside(hive.id, now.as_nanoseconds())
}

/// Starts timer `N` of an app, which ticks once per period. At most one tick is in flight; meanwhile, further
/// ticks are skipped and counted as collapsed.
pub(crate) fn every<A: Handlers + Handles<Tick<N>>, const N: u32>(
    hive: &Arc<HiveInner>,
    app: Arc<AppRuntime>,
    period: Duration,
) {
    fn fire<A: Handlers + Handles<Tick<N>>, const N: u32>(
        app: Arc<AppRuntime>,
        period: Duration,
        one: Arc<Credits>,
        turn: &mut Turn,
    ) {
        if turn.hive.is_stopped() {
            return;
        }

        if one.take_all(1) {
            let source = source(turn.hive, turn.now);
            let batch = Batch::new(vec![Tick::<N>], source);
            turn.cause = Some(Cause::new(&one, 1, &turn.hive.in_flight));
            let kind = turn.hive.types.kind::<Tick<N>>();
            let mut queue = SenderQueue::default();
            kind.send(&batch, 0..1, Address::App(AppId(app.index)), &mut RouteContext::new(&mut queue, turn));
            turn.cause = None;
        } else {
            turn.hive.timers.collapsed.fetch_add(1, Ordering::Relaxed);
        }

        let next = turn.now + period;
        turn.hive.timers.at(next, Box::new(move |turn| fire::<A, N>(app, period, one, turn)));
    }

    let one = Credits::new(1);
    let first = hive.now() + period;
    hive.timers.at(first, Box::new(move |turn| fire::<A, N>(app, period, one, turn)));
}

/// Starts timer `N` of an app, which sweeps the cells of a dictionary once per period. The visits are
/// spread over half of the period (see [`Pace::due`]). If visits of an earlier sweep are not over, those to the same part of the
/// cells in the same log are skipped (see [`TickVisits`]), and the tick is counted as collapsed.
pub(crate) fn every_each<A: Handlers + Handles<Each<K, Tick<N>>>, K: Key, const N: u32>(
    hive: &Arc<HiveInner>,
    app: Arc<AppRuntime>,
    period: Duration,
    run: RunDelivery,
) {
    let visits = Arc::new(TickVisits::of(&app));
    let first = hive.now() + period;
    hive.timers.at(first, Box::new(move |turn| start_sweep::<A, K, N>(app, period, visits, run, turn)));
}

/// Starts one of a timer's sweeps.
fn start_sweep<A: Handlers + Handles<Each<K, Tick<N>>>, K: Key, const N: u32>(
    app: Arc<AppRuntime>,
    period: Duration,
    visits: Arc<TickVisits>,
    run: RunDelivery,
    turn: &mut Turn,
) {
    if turn.hive.is_stopped() {
        return;
    }

    let next = turn.now + period;
    let batch = Batch::new(vec![Tick::<N>], source(turn.hive, turn.now));
    let pace = Pace { visits: visits.clone(), start: turn.now, period, is_whole: true };
    if let Some(visit) = Visit::of(&batch, 0) {
        // the sweep is not logged, even if the app is journaled: if a crash cuts it short, the next
        // tick starts another one
        paced(app.clone(), visit, run, 0, pace, turn)
    }

    turn.hive.timers.at(next, Box::new(move |turn| start_sweep::<A, K, N>(app, period, visits, run, turn)));
}
