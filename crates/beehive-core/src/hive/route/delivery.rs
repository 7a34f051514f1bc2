//! The last step of routing: puts messages into the mailbox of the bee that owns their cells, or into the
//! sender's queue.

use crate::cell::{CellId, CellSet};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::delivery::Delivery;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::sender::blocked::{Blocked, Owners};
use crate::hive::dispatch::turn::Turn;
use crate::hive::ownership::queen::Owner;
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
    if !cx.queue.blocks(app.index, &delivery.cells) || cx.turn.hive.breaks(Mutant::NoAfter) {
        // another thread may retire the bee between this thread's look-up and its push. The push then
        // returns the delivery, and the next round finds or claims another owner. After three rounds, the
        // delivery goes into the sender's queue
        for _ in 0..3 {
            let owner = match app.owner(&delivery.cells) {
                Some(bee) => Owner::Bee(bee),
                None => {
                    let sets = match std::mem::replace(&mut is_asked, true) {
                        false => missing(&delivery.cells),
                        true => Some(vec![delivery.cells.clone()]),
                    };
                    let owners = sets.map(|sets| app.claim(sets, cx.turn.hive));
                    owners.and_then(|owners| owners.into_iter().next()).unwrap_or(Owner::NotYet)
                }
            };

            match owner {
                Owner::NotYet => break,
                Owner::Bee(bee) => match bee.push(delivery, cx.turn) {
                    Ok(()) => return false,
                    Err(back) => delivery = back,
                },
            }
        }
    }

    cx.queue.block(Box::new(BlockedDelivery { app: app.clone(), delivery }), cx.turn.hive);
    true
}

/// A delivery that waits in its sender's queue until one bee owns its cells.
struct BlockedDelivery {
    app: Arc<AppRuntime>,
    delivery: Delivery,
}

impl Blocked for BlockedDelivery {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn cells(&self) -> &[CellId] {
        &self.delivery.cells
    }

    fn try_deliver(self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Blocked>> {
        let BlockedDelivery { app, delivery } = *self;
        match app.owner(&delivery.cells) {
            Some(bee) => bee
                .push(delivery, turn)
                .map_err(|delivery| Box::new(BlockedDelivery { app, delivery }) as Box<dyn Blocked>),
            None => Err(Box::new(BlockedDelivery { app, delivery })),
        }
    }

    fn owners(&self) -> Option<Arc<dyn Owners>> {
        Some(self.app.clone())
    }
}
