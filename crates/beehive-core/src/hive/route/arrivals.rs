//! Takes what other hives say: messages for bees of this hive, acknowledgments, refusals and reports.

use crate::cell::HiveId;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{Place, Turn};
use crate::hive::links::frame::{Body, ToBee};
use crate::hive::links::links::{Handle, Links};
use crate::hive::message::arrival::Arrival;
use crate::hive::route::recovery;
use std::sync::{Arc, Weak};

/// Takes what other hives say to a hive.
pub(crate) struct Arrivals(Weak<HiveInner>);

impl Arrivals {
    pub(crate) fn new(hive: &Arc<HiveInner>) -> Arc<Arrivals> {
        Arc::new(Arrivals(Arc::downgrade(hive)))
    }
}

impl Handle for Arrivals {
    fn handle(&self, from: HiveId, body: Body) {
        let Some(hive) = self.0.upgrade().filter(|hive| !hive.is_over()) else { return };
        let (Some(links), Some(logs)) = (&hive.links, &hive.logs) else { return };
        match body {
            Body::Messages(to_bee) => {
                if links.registry.index() >= to_bee.known {
                    return deliver(&hive, links, from, *to_bee);
                }
                // the replica may not know yet that the bee has these cells
                let (hive, links) = (hive.clone(), links.clone());
                hive.clone().platform.spawn(Box::pin(async move {
                    links.registry.wait(to_bee.known).await;
                    deliver(&hive, &links, from, *to_bee)
                }))
            }
            Body::Acked(acked) => {
                if !acked.lane.is_outside() {
                    logs.acknowledge(acked)
                }
                links.acked(&acked)
            }
            Body::Refused { ticket, index } => links.refused(ticket, index),
            Body::Report { ticket, at, report } => {
                if let Some(requester) = links.requester(ticket) {
                    requester.report(at, report)
                }
            }
            Body::Closed { ticket } => links.closed(ticket),
            Body::Stage(_) | Body::Staged(_) => {
                links.push_move(from, body);
                logs.changed.notify_one()
            }
            Body::Floors(floors) => {
                floors.into_iter().for_each(|(lane, app, floor)| logs.lanes.foreign.raise(lane, app, floor))
            }
            Body::Retired(lanes) => {
                let known = logs.lanes.forget_foreign(&lanes);
                recovery::retire_lanes(&hive, known)
            }
        }
    }
}

/// Hands messages to the bee for which they are meant. Sends them back if this hive does not have the bee, or if the bee
/// does not own their cells.
fn deliver(hive: &Arc<HiveInner>, links: &Arc<Links>, from: HiveId, to_bee: ToBee) {
    let (Some(first), Some(logs)) = (to_bee.first(), &hive.logs) else { return };
    if hive.is_over() {
        return;
    }
    // a sender that has come to this hive has its lane here, and a late message from its old hive changes nothing
    if !logs.lanes.bees.knows(first.id.lane) {
        logs.lanes.foreign.arrived(first.id.lane, from, first.id.app, to_bee.floor)
    }
    let arrival = Arc::new(Arrival::new(links.clone(), from, to_bee.bee, to_bee.ticket, to_bee.asks));

    Turn::with(hive, Place::Runners, |turn| {
        for (at, emit) in (0..).zip(to_bee.messages.iter()) {
            // a later message must not overtake one that is sent back
            if arrival.is_refused() {
                return;
            }
            let mut queue = SenderQueue::default();
            let cx = &mut RouteContext::new(&mut queue, turn);
            if let Err(error) = hive.types.logged.deliver(emit, (arrival.clone(), at), cx) {
                tracing::error!(from = from.0, %error, "a message of another hive cannot be decoded; do all hives run the same program?");
                return arrival.refuse();
            }
        }
    })
}
