//! Takes what other hives say: messages for bees of this hive, acknowledgments, refusals and reports.

use crate::cell::HiveId;
use crate::hive::admission::outside_lanes::LaneNumbers;
use crate::hive::consensus::journal::LaneId;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{Place, Turn};
use crate::hive::links::frame::{Body, ToBee, ToIoBee};
use crate::hive::links::links::{Handle, Links};
use crate::hive::message::arrival::{Arrival, Asking};
use crate::hive::ownership::foreign;
use crate::mutant::Mutant;
use std::collections::BTreeSet;
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
            Body::Mail(mail) => {
                let ToIoBee { io, name, ticket, messages } = *mail;
                let asking = ticket.map(|ticket| Asking::new(links.clone(), from, ticket));
                hive.io.deliver_encoded(io, (name, messages), asking)
            }
            Body::Stage(_) | Body::Staged(_) => {
                links.push_move(from, body);
                logs.changed.notify_one()
            }
            Body::Floors(floors) => {
                let teller = (from, links.incarnation_in_session(from));
                let raise = |(lane, app, floor)| logs.lanes.foreign.raise(lane, app, floor, teller);
                floors.into_iter().for_each(raise)
            }
            Body::Retired(lanes) => {
                // another hive may have had the bee, and may still have copies of its messages under way. Only the
                // registry says that a receiver may forget the lane
                let is_early = |lane: &LaneId| !lane.is_outside() && !hive.breaks(Mutant::RetiredUnheard);
                let (of_bees, ended): (Vec<LaneId>, Vec<LaneId>) = lanes.into_iter().partition(is_early);
                logs.lanes.foreign.check_soon(of_bees);
                let known = logs.lanes.forget_foreign(&ended);
                foreign::retire_lanes(&hive, known)
            }
            Body::Remembers(lanes) => {
                // this hive knows the lanes of all its senders outside of bees until they have ended
                let has_ended = |lane: &LaneId| {
                    let is_ours = LaneNumbers::are_of(*lane, links.lane) && !lane.is_lasting();
                    is_ours && !logs.lanes.is_of_this_hive(*lane)
                };
                let ended: BTreeSet<LaneId> = lanes.iter().map(|(lane, _)| *lane).filter(has_ended).collect();
                if !ended.is_empty() {
                    links.send(from, Body::Retired(ended.into_iter().collect()))
                }
                let floor = |(lane, app)| Some((lane, app, logs.lanes.floor_of_sender(lane, app)?));
                links.say_floors_to(from, lanes.into_iter().filter_map(floor).collect())
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
    let lane = first.id.lane;
    if !logs.lanes.bees.knows(lane) {
        let teller = (from, links.incarnation_in_session(from));
        let has_retired = || {
            let mut has_retired = false;
            links.registry.read(&mut |view| has_retired = !lane.is_outside() && view.is_retired(lane));
            has_retired && !hive.breaks(Mutant::RetiredUnheard)
        };
        if !logs.lanes.foreign.arrived(lane, teller, (first.id.app, to_bee.floor), has_retired) {
            // everything on the lane was handled, so this is a copy that its sender left behind when it moved
            return;
        }
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
