//! Hosts a bee that has come to this hive, or that stays in it after all.

use crate::cell::BeeId;
use crate::hive::admission::offices::Office;
use crate::hive::admission::outside_lanes::LaneNumbers;
use crate::hive::bee::asleep::Asleep;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::{AppId, BeeImage, Emit, LaneId, Record};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{Link, Place, Stateless, Turn};
use crate::hive::ownership::foreign::{is_foreign, retire_lanes};
use crate::hive::ownership::reconciler::Reconciler;
use crate::mutant::Mutant;
use beehive_protocol::Emits;
use std::sync::Arc;

impl Reconciler {
    /// Makes the staged copy of a bee the bee, because the registry says so.
    pub(super) async fn adopt(&self, link: &Arc<Link>, bee: (AppId, BeeId), record: Record) {
        while self.app(bee.0).and_then(|app| app.bee(bee.1)).is_some_and(|old| old.is_unhosted()) {
            // what the bee had accepted in another log, which this hive has lost, must be with its senders first
            self.pause().await;
            if self.hive.is_over() {
                return;
            }
        }
        if link.commit(record).await && !self.hive.is_over() {
            self.state.lock().staging.remove(&(link.position(), bee.0, bee.1));
            let arrived = link.outline.lock().log.take_active(bee.0, bee.1);
            self.host(link, bee, arrived, None)
        }
    }

    /// Sends what the bee has sent and nobody has handled, and then lets the bee handle messages. `content` is its image and
    /// its outbox. `stays` is the bee if it was in this log before.
    pub(super) fn host(
        &self,
        link: &Arc<Link>,
        (app, id): (AppId, BeeId),
        content: Option<(Box<BeeImage>, Emits)>,
        stays: Option<Arc<Bee>>,
    ) {
        let (Some((mut image, outbox)), Some(runtime)) = (content, self.app(app)) else { return };
        let (foreign, ended) = self.foreign_lanes(&image);
        let mut cells = Vec::new();
        self.links.registry.read(&mut |view| {
            runtime.leaves_lost(view);
            cells = view.cells_of(id).collect()
        });
        if link.is_deposed() {
            // the next leader of the log has the bee
            return;
        }
        image.cells.extend(cells);
        for lane in foreign {
            if !link.lanes.bees.knows(lane) && !link.lanes.breaks(Mutant::ForeignForgotten) {
                link.lanes.foreign.remember(lane);
                // from now on, an app of this hive needs the floors
                let _ = link.lanes.foreign.floor(lane, app);
            }
        }
        // the log was not told while the bee was elsewhere
        retire_lanes(&self.hive, ended);
        let lasting = image.seen.floors().filter(|(lane, _)| lane.is_lasting());
        lasting.for_each(|(lane, floor)| drop(link.lanes.resume(lane.0 >> 2, floor)));
        self.take_lanes(link, (app, id), &image, &outbox);

        Turn::with(&self.hive, Place::Runners, |turn| {
            turn.keeps_woken();
            let mut queue = SenderQueue::shared();
            let kept = if link.lanes.breaks(Mutant::AdoptedOvertakes) {
                SenderQueue::shared()
            } else {
                queue.clone()
            };
            // the bee handles nothing before this has been routed; otherwise it could overtake itself
            turn.office = link.office();
            turn.stateless = Stateless::AfterOthers;
            for emit in outbox.iter() {
                let cx = &mut RouteContext::new(&mut queue, turn);
                if let Err(error) = self.hive.types.logged.resend(emit, cx) {
                    tracing::error!(app = runtime.name, bee = %id, %error, "a message cannot be sent again")
                }
            }
            turn.office = Office::NONE;
            let all: Vec<_> = image.cells.iter().copied().collect();
            let mut asleep = Asleep::new(*image, link, kept);
            if let Err(error) = asleep.show(runtime) {
                // it is set aside when it is to run, like a bee of a log that this hive has taken over
                tracing::error!(app = runtime.name, bee = %id, %error, "a bee that has moved cannot be decoded; do all hives run the same program?")
            }
            match stays {
                Some(bee) => bee.stays(asleep),
                None => {
                    let bee = Bee::new(runtime, id, &all, asleep);
                    let mut queen = runtime.queen.lock();
                    if link.is_deposed() {
                        return;
                    }
                    if let Some(old) = queen.bees.get(id) {
                        // the bee comes from another log of this hive, which has not dropped it yet
                        old.has_moved();
                    }
                    queen.bees.insert(bee.clone());
                    all.iter().for_each(|cell| runtime.routes.set(*cell, &bee))
                }
            }
        })
    }

    /// Returns the lanes of senders in other hives that a bee remembers, and those that have ended.
    fn foreign_lanes(&self, image: &BeeImage) -> (Vec<LaneId>, Vec<LaneId>) {
        let (mut foreign, mut ended) = (Vec::new(), Vec::new());
        self.links.registry.read(&mut |view| {
            let lanes = image.seen.floors().map(|(lane, _)| lane);
            (foreign, ended) = lanes.partition(|lane| is_foreign(*lane, self.links.lane, view))
        });
        ended.retain(|lane| !lane.is_lasting() && !LaneNumbers::are_of(*lane, self.links.lane));
        (foreign, ended)
    }

    /// The lanes of the bee are now lanes of this hive.
    fn take_lanes(&self, link: &Link, (app, id): (AppId, BeeId), image: &BeeImage, outbox: &Emits) {
        let (bees, at, office) = (&link.lanes.bees, link.position(), link.office());
        let own = LaneId::of_bee(app, id);
        let outbox: Vec<&Emit> = if bees.is_in(own, at) { Vec::new() } else { outbox.iter().collect() };
        for (lane, emits) in bees.by_lane(outbox.into_iter()) {
            if bees.is_in(lane, at) {
                continue;
            }
            bees.sent_in_order(office, emits);
            if lane != own {
                bees.end(lane)
            }
        }
        bees.restore(own, image.next_seq, office);
        let lanes: Vec<LaneId> = image.heir_of.iter().copied().chain([own]).collect();
        // a lane on which nothing is unhandled any more is not here, but receivers must remember it until it has ended
        let lanes: Vec<LaneId> = lanes.into_iter().filter(|lane| bees.knows(*lane)).collect();
        link.lanes.foreign.forget(&lanes);
    }
}
