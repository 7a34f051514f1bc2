//! The last step of routing: puts messages into the mailbox of the bee that owns their cells, or into the
//! sender's queue.

use crate::cell::{CellId, CellSet};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::delivery::Delivery;
use crate::hive::consensus::journal::{AppId, LaneId};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::blocked::{Blocked, Owners};
use crate::hive::dispatch::sender::queue::{Back, QueueState, SenderQueue};
use crate::hive::dispatch::turn::Turn;
use crate::hive::ownership::queen::Owner;
use crate::hive::route::journey::{Journey, Next, stays};
use crate::mutant::Mutant;
use std::sync::Arc;

/// Pushes a run of messages into the mailbox of the bee that owns all their cells, or blocks the run in the
/// sender's queue. Returns whether the run is blocked.
///
/// If the cells have no owner, this calls `missing` (at most once), which returns the sets of cells to claim,
/// starting with the delivery's own set, or `None` if that set was already claimed.
pub(crate) fn deliver(
    app: &Arc<AppRuntime>,
    delivery: Delivery,
    cx: &mut RouteContext,
    missing: &mut dyn FnMut(&CellSet) -> Option<Vec<CellSet>>,
) -> bool {
    let (mut delivery, mut is_asked) = (delivery, false);
    let may_lose = app.is_clustered() && delivery.batch.arrival().is_none();
    if !cx.queue.blocks(app.index, &delivery.cells) || cx.turn.hive.breaks(Mutant::NoAfter) {
        // another thread may retire the bee between this thread's look-up and its push. The push then
        // returns the delivery, and the next round finds or claims another owner. After three rounds, the
        // delivery goes into the sender's queue
        for _ in 0..3 {
            let owner = match app.owner(&delivery.cells) {
                Some(bee) => Owner::Bee(bee),
                None if app.elsewhere(&delivery.cells).is_some() => break,
                None => {
                    let sets = match std::mem::replace(&mut is_asked, true) {
                        false => missing(&delivery.cells),
                        true => Some(vec![delivery.cells.clone()]),
                    };
                    let owners = sets.map(|sets| app.claim(sets, cx.turn.hive));
                    owners.and_then(|owners| owners.into_iter().next()).unwrap_or(Owner::NotYet)
                }
            };

            // After the look-up: if the hive has lost the log of the sender, the next leader has the messages, and the owner may
            // be the successor of a bee that has handled them and has ended
            if !cx.turn.hive.holds(delivery.office) {
                return is_of_next_leader(&delivery);
            }
            match owner {
                Owner::NotYet => break,
                Owner::Bee(bee) => {
                    if may_lose && delivery.back.is_none() {
                        delivery.back = Some(cx.queue.back())
                    }
                    match bee.push(delivery, cx.turn) {
                        Ok(()) => return false,
                        Err(back) => delivery = back,
                    }
                    // if the hive has lost the bee, earlier messages may have come back
                    if cx.queue.blocks(app.index, &delivery.cells) {
                        break;
                    }
                }
            }
        }
    }

    if !cx.turn.hive.holds(delivery.office) {
        return is_of_next_leader(&delivery);
    }
    if app.is_clustered() {
        if let Some(arrival) = delivery.batch.arrival() {
            // the sender waits, and not this hive
            arrival.refuse();
            return false;
        }
        if stays(&delivery) && app.elsewhere(&delivery.cells).is_some() {
            delivery.batch.committed(delivery.cells.len());
            return false;
        }
    }
    delivery.back = None;
    let blocked = BlockedDelivery { app: app.clone(), delivery, journey: None };
    cx.queue.block(Box::new(blocked), cx.turn.hive);
    true
}

/// Ends a delivery of a sender whose log the hive no longer leads. The next leader of the log sends the messages.
#[cold]
fn is_of_next_leader(delivery: &Delivery) -> bool {
    delivery.batch.committed(delivery.cells.len());
    false
}

/// Puts a delivery, which a bee had accepted that the hive has lost, back into the queue of its sender, before everything that
/// waits there. If it came from another hive, sends it back.
pub(crate) fn give_back(app: &Arc<AppRuntime>, mut delivery: Delivery, hive: &Arc<HiveInner>) {
    if let Some(arrival) = delivery.batch.arrival() {
        return arrival.refuse();
    }
    if delivery.count == 0
        && let (Some(sweep), Some(logs)) = (delivery.batch.sweep(), &hive.logs)
    {
        // the next leader of the log visits all cells in it
        logs.visited(AppId(app.index), sweep, &delivery.cells)
    }
    match delivery.back.take() {
        Some(queue) if delivery.count > 0 && hive.holds(delivery.office) && !stays(&delivery) => {
            let blocked = BlockedDelivery { app: app.clone(), delivery, journey: None };
            match hive.breaks(Mutant::GivenBackLast) {
                true => SenderQueue::of(&queue).block(Box::new(blocked), hive),
                false => SenderQueue::of(&queue).block_first(Box::new(blocked), hive),
            }
        }
        _ => delivery.batch.committed(delivery.cells.len()),
    }
}

/// A delivery that waits in its sender's queue until one bee owns its cells.
struct BlockedDelivery {
    app: Arc<AppRuntime>,
    delivery: Delivery,
    /// `None` if the hive is alone.
    journey: Option<Journey>,
}

impl BlockedDelivery {
    /// Sends the messages to another hive, or finds out what became of them.
    fn travel(mut self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Blocked>> {
        let Some(links) = turn.hive.links.clone() else { return Err(self) };
        let Some(to) = self.app.elsewhere(&self.delivery.cells) else { return Err(self) };
        // After the look-up. The registry knows the next leader of a log before that hive has done anything. So what this replica
        // says about the owner follows from nothing that the next leader has done, unless the replica knows the leader, too
        links.registry.read(&mut |view| {
            self.app.leaves_lost(view);
        });
        if !turn.hive.holds(self.delivery.office) {
            is_of_next_leader(&self.delivery);
            return Ok(());
        }
        let Some(journey) = &mut self.journey else { return Err(self) };
        if to.hive == turn.hive.id {
            // this hive does not lead the bee's colony yet, or no longer
            journey.rest(turn.hive);
            return Err(self);
        }
        let app = AppId(self.app.index);
        let is_gone =
            stays(&self.delivery) || !journey.send(&mut self.delivery, app, &to, (&links, turn.hive));
        if !is_gone {
            return Err(self);
        }
        self.delivery.batch.committed(self.delivery.cells.len());
        Ok(())
    }
}

impl Blocked for BlockedDelivery {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn cells(&self) -> &[CellId] {
        &self.delivery.cells
    }

    fn lane(&self) -> LaneId {
        self.delivery.batch.numbers().lane
    }

    fn enter(&mut self, queue: &Arc<QueueState>) {
        if self.app.is_clustered() {
            self.journey.get_or_insert_default().enter(queue)
        }
    }

    fn try_deliver(mut self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Blocked>> {
        if let (Some(links), Some(journey)) = (&turn.hive.links, &mut self.journey) {
            match journey.next(links, turn.hive) {
                Next::Wait => return Err(self),
                Next::End(handled) if handled >= self.delivery.count => {
                    self.delivery.batch.committed(self.delivery.cells.len());
                    return Ok(());
                }
                Next::End(handled) => {
                    self.delivery.first += handled;
                    self.delivery.count -= handled
                }
                Next::Route => {}
            }
        }
        let owner = self.app.owner(&self.delivery.cells);
        if !turn.hive.holds(self.delivery.office) {
            is_of_next_leader(&self.delivery);
            return Ok(());
        }
        let Some(bee) = owner else { return self.travel(turn) };
        let BlockedDelivery { app, mut delivery, mut journey } = *self;
        delivery.back = journey.as_ref().and_then(Journey::queue).map(Back::to);
        bee.push(delivery, turn).map_err(|mut delivery| {
            delivery.back = None;
            // in a cluster, the owner may be about to move
            if let Some(journey) = &mut journey {
                journey.rest(turn.hive)
            }
            Box::new(BlockedDelivery { app, delivery, journey }) as Box<dyn Blocked>
        })
    }

    fn owners(&self) -> Option<Arc<dyn Owners>> {
        let is_under_way = self.journey.as_ref().is_some_and(Journey::is_under_way);
        let is_elsewhere = is_under_way || self.app.elsewhere(&self.delivery.cells).is_some();
        (!is_elsewhere).then(|| self.app.clone() as _)
    }
}
