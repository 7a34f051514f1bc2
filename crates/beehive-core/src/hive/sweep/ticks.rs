//! Timers as data: what is due when, in one ordered table, woken by one sleep.

use crate::app::{Handlers, Handles};
use crate::hive::admission::credits::{Cause, Credits, UnderWay};
use crate::hive::admission::deferred_wakes;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::bee::RunDelivery;
use crate::hive::bee::routing_table::Routes;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::message_types::{MessageType, Types};
use crate::hive::dispatch::sender_queue::SenderLane;
use crate::hive::dispatch::turn::{Place, Stateless, Turn};
use crate::hive::message::batch::{Address, Batch, Source};
use crate::hive::sweep::logged_sweep;
use crate::key::Key;
use crate::message::{Each, Message, Tick};
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

type Fire = Box<dyn FnOnce(&mut Turn) + Send>;
/// What has been taken, and what says that it is under way.
type Fired = (Arc<Cause>, Vec<Fire>);

#[derive(Default)]
struct Due {
    table: BTreeMap<(Time, u64), Fire>,
    next_id: u64,
}

/// What a hive has to do later.
#[derive(Default)]
pub(crate) struct Timers {
    due: Mutex<Due>,
    sooner: Arc<Notify>,
    /// Ticks that were left out because the one before was not done.
    pub(crate) collapsed: AtomicU64,
}

impl Timers {
    pub(crate) fn at(&self, at: Time, fire: Fire) {
        let mut due = self.due.lock();
        due.next_id += 1;
        let id = due.next_id;
        let first = due.table.first_key_value().is_none_or(|((first, _), _)| at < *first);
        due.table.insert((at, id), fire);
        drop(due);
        if first {
            deferred_wakes::one(&self.sooner)
        }
    }

    /// Gives `app` the messages of `range` at a time, on the lane of whoever asked for it: two that ring one after the other
    /// come in that order.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn after<M: Message>(
        &self,
        at: Time,
        app: u16,
        kind: &Arc<MessageType<M>>,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        lane: SenderLane,
        types: &Types,
    ) {
        let (kind, batch, count, mut lane) = (kind.clone(), batch.clone(), range.len(), lane);
        let waiting = types.timers.take(count as u32);
        let fire = move |turn: &mut Turn| {
            // until all that it brings about is done it counts as one that waits: else nothing would bound who sets
            // timers faster than they are handled
            turn.cause = Some(Cause::of(waiting, &turn.hive.under_way));
            kind.send(&batch, range, Address::App(app), &mut lane, turn);
            turn.cause = None
        };
        self.at(at, Box::new(fire))
    }

    /// Number of timers that wait.
    pub(crate) fn len(&self) -> usize {
        self.due.lock().table.len()
    }

    /// Takes what is due at `now` out of the table, and tells when the next is. What is taken is under way for as long as
    /// its cause is held, from before it has left the table: at no time does it neither wait nor count as work.
    fn take_due(&self, now: Time, under_way: &Arc<UnderWay>) -> (Option<Fired>, Option<Time>) {
        let mut due = self.due.lock();
        let mut fired: Option<Fired> = None;
        while let Some(entry) = due.table.first_entry() {
            if entry.key().0 > now {
                return (fired, Some(entry.key().0));
            }
            let fired = fired.get_or_insert_with(|| (under_way.begin(), Vec::new()));
            fired.1.push(entry.remove());
        }
        (fired, None)
    }

    /// Drops all that wait; returns how many.
    pub(crate) fn clear(&self) -> usize {
        let table = std::mem::take(&mut self.due.lock().table);
        table.len()
    }
}

/// Fires what is due until the hive stops.
pub(crate) async fn run(hive: Arc<HiveInner>) {
    loop {
        // before the look: what happens after it is heard of
        let (sooner, ended) = (hive.timers.sooner.notified(), hive.ended.notified());
        if hive.is_over() {
            return;
        }
        let now = hive.now();
        let (fired, next) = hive.timers.take_due(now, &hive.under_way);
        if let Some((_under_way, fires)) = fired {
            Turn::with(&hive, Place::Runners, |turn| {
                turn.stateless = Stateless::InOrder;
                fires.into_iter().for_each(|fire| fire(turn))
            });
            continue;
        }
        let wait = next.map_or(Duration::from_secs(3600), |at| at.since(now));
        tokio::select! {
            () = hive.platform.sleep(wait) => {}
            () = sooner => {}
            () = ended => {}
        }
    }
}

/// The source of a message that a timer of the hive sends.
fn source(hive: &HiveInner, now: Time) -> Source {
    Source::outside(hive.id, now.as_nanoseconds())
}

/// Fires timer `N` of an app, once per period; at most one tick is under way, missed ones collapse.
pub(crate) fn every<A: Handlers + Handles<Tick<N>>, const N: u32>(
    hive: &Arc<HiveInner>,
    app: Arc<AppRuntime<A>>,
    period: Duration,
) {
    fn fire<A: Handlers + Handles<Tick<N>>, const N: u32>(
        app: Arc<AppRuntime<A>>,
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
            turn.cause = Some(Cause::new(&one, 1, &turn.hive.under_way));
            let kind = turn.hive.types.kind::<Tick<N>>();
            kind.send(&batch, 0..1, Address::App(app.index), &mut SenderLane::default(), turn);
            turn.cause = None;
        } else {
            turn.hive.timers.collapsed.fetch_add(1, Ordering::Relaxed);
        }
        let next = turn.now + period;
        turn.hive.timers.at(next, Box::new(move |turn| fire(app, period, one, turn)));
    }
    let one = Credits::new(1);
    let first = hive.now() + period;
    hive.timers.at(first, Box::new(move |turn| fire::<A, N>(app, period, one, turn)));
}

/// Sweeps the cells of a dictionary with timer `N`, spread over the period.
pub(crate) fn every_each<A: Handlers + Handles<Each<K, Tick<N>>>, K: Key, const N: u32>(
    hive: &Arc<HiveInner>,
    app: Arc<AppRuntime<A>>,
    period: Duration,
    run: RunDelivery<A>,
) {
    let parts = Credits::new(Routes::<A>::SHARDS as u32);
    let first = hive.now() + period;
    hive.timers.at(first, Box::new(move |turn| start_sweep::<A, K, N>(app, period, parts, run, turn)));
}

fn start_sweep<A: Handlers + Handles<Each<K, Tick<N>>>, K: Key, const N: u32>(
    app: Arc<AppRuntime<A>>,
    period: Duration,
    parts: Arc<Credits>,
    run: RunDelivery<A>,
    turn: &mut Turn,
) {
    if turn.hive.is_stopped() {
        return;
    }
    let next = turn.now + period;
    if parts.take_all(parts.limit()) {
        let batch = Batch::new(vec![Tick::<N>], source(turn.hive, turn.now));
        let pace = crate::hive::sweep::sweep::Pace { credits: parts.clone(), start: turn.now, period };
        if let Some(visit) = crate::hive::sweep::sweep::Visit::of(&batch, 0) {
            if app.link.is_some() {
                let lane = &mut SenderLane::default();
                logged_sweep::begin::<A, K, _>(&app, &batch, 0, visit, run, Some(pace), lane, turn);
            } else {
                crate::hive::sweep::sweep::paced(app.clone(), visit, run, 0, pace, turn)
            }
        }
    } else {
        turn.hive.timers.collapsed.fetch_add(1, Ordering::Relaxed);
    }
    turn.hive.timers.at(next, Box::new(move |turn| start_sweep::<A, K, N>(app, period, parts, run, turn)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_been_taken_is_under_way_until_it_has_fired() {
        let (timers, under_way) = (Timers::default(), Arc::new(UnderWay::default()));
        let second = |n: u64| Time::from_nanoseconds(n * 1_000_000_000);
        timers.at(second(1), Box::new(|_| ()));
        timers.at(second(3), Box::new(|_| ()));
        let (early, next) = timers.take_due(Time::from_nanoseconds(0), &under_way);
        assert!(early.is_none() && under_way.is_none() && next == Some(second(1)));
        let (fired, next) = timers.take_due(second(2), &under_way);
        assert!(timers.len() == 1 && !under_way.is_none() && next == Some(second(3)));
        assert_eq!(fired.as_ref().map(|fired| fired.1.len()), Some(1));
        drop(fired);
        assert!(under_way.is_none())
    }
}
