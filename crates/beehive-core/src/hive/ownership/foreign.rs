//! Which of the lanes that a hive remembers belong to senders in other hives, which of them have ended, and which hive tells
//! the floors of the others.
//!
//! Only the hive's own replica of the registry says that the lane of a bee has ended. A late copy of a message that was sent
//! before its sender moved may arrive after the hive that has the sender now says so. What makes the receiver drop such a
//! copy is either its memory of the lane or the registry.

use crate::cell::HiveId;
use crate::hive::admission::outside_lanes::LaneNumbers;
use crate::hive::consensus::journal::{AppId, LaneId, Record};
use crate::hive::consensus::registry::RegistryState;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::links::frame::Body;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of lanes that are checked at once, because the registry is locked meanwhile.
const CHECKED_AT_ONCE: usize = 1024;

/// Checks whether a lane may belong to another hive that still uses it. Otherwise it belonged to an earlier incarnation of
/// some hive, or to a bee that has ended. `own` is the lane that the registry has assigned to this hive.
pub(crate) fn is_foreign(lane: LaneId, own: LaneId, view: &RegistryState) -> bool {
    if !lane.is_outside() {
        return !view.is_retired(lane);
    }
    let mut others = view.hives().filter_map(|(_, hive)| hive.lane()).filter(|of_hive| *of_hive != own);
    others.any(|of_hive| LaneNumbers::are_of(lane, of_hive))
}

/// Returns the hive that has the sender of a lane.
fn hive_of_sender(lane: LaneId, view: &RegistryState) -> Option<HiveId> {
    if lane.is_outside() {
        let is_its_hive = |lane_of: Option<LaneId>| lane_of.is_some_and(|of| LaneNumbers::are_of(lane, of));
        return view.hives().find(|(_, hive)| is_its_hive(hive.lane())).map(|(hive, _)| hive);
    }
    let of_bee = || Some(view.bee(view.bee_of_lane(lane)?)?.colony);
    view.colony(lane.colony_of_app().or_else(of_bee)?)?.leader
}

/// Forgets the lanes of other hives that have ended, and asks for the floors of the others if the hive that has the sender
/// does not tell them yet: it does not know that receivers of this hive remember the lane, because one of the two has moved,
/// or because it has started again. Each call looks at some of the lanes.
pub(crate) fn look_after(hive: &Arc<HiveInner>) {
    let (Some(links), Some(logs)) = (&hive.links, &hive.logs) else { return };
    let checked = logs.lanes.foreign.to_check(CHECKED_AT_ONCE);
    if checked.is_empty() {
        return;
    }
    let (mut ended, mut asked) = (Vec::new(), BTreeMap::<HiveId, Vec<(LaneId, AppId)>>::new());
    links.registry.read(&mut |view| {
        for (lane, apps) in &checked {
            if !is_foreign(*lane, links.lane, view) {
                ended.push(*lane);
                continue;
            }
            let Some(of_sender) = hive_of_sender(*lane, view).filter(|of_sender| *of_sender != hive.id)
            else {
                continue;
            };
            let Some(entry) = view.hive(of_sender) else { continue };
            let tells = Some((of_sender, entry.incarnation));
            let untold = apps.iter().filter(|(_, told_by)| *told_by != tells);
            asked.entry(of_sender).or_default().extend(untold.map(|(app, _)| (*lane, *app)))
        }
    });
    let ended = logs.lanes.forget_foreign(&ended);
    retire_lanes(hive, ended);
    // a hive that cannot be reached is asked later, so that nothing piles up
    asked.retain(|hive, lanes| !lanes.is_empty() && links.is_settled(*hive));
    asked.into_iter().for_each(|(hive, lanes)| links.send(hive, Body::Remembers(lanes)))
}

/// Records in all logs that these lanes have ended, so that every dedup table drops them. Each log gets one record at a time, so a
/// log that cannot commit gets no more of them. The lanes that end meanwhile wait for the next record.
pub(crate) fn retire_lanes(hive: &Arc<HiveInner>, lanes: Vec<LaneId>) {
    const LANES_PER_RECORD: usize = 4096;
    if lanes.is_empty() {
        return;
    }

    for link in &hive.log_clients() {
        link.without_bee.forget(&lanes);
        if !link.ended_lanes.add(&lanes) {
            continue;
        }
        let (link, links) = (link.clone(), hive.links.clone());
        hive.platform.spawn(Box::pin(async move {
            while let Some(lanes) = link.ended_lanes.next(LANES_PER_RECORD) {
                // a hive that starts again must not take them for lanes in use
                let view = links.as_ref().map_or(0, |links| links.registry.index());
                if !link.commit(Record::Retire { lanes, view }).await {
                    return;
                }
            }
        }))
    }
}
