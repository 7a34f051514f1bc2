//! A directed test for each fence that a log needs because it forgets something, or judges that something is absent: what a
//! leader with an older replica does if the record does not raise the fence, and that it does nothing if it does.
//!
//! A bee that is dropped or has ended comes back; a staged copy is given up; a message on a lane that was forgotten is handled
//! again. Each test takes whether the record is fenced, and fails without the fence.

use crate::world::id;
use beehive_protocol::{
    AppId, BeeId, CellId, Epoch, Input, LaneId, Leader, LogState, Part, Proposal, Record, RegistryState, Seq,
    Step, Untold, forget, frames, stage, steps,
};
use std::collections::BTreeSet;

const APP: AppId = AppId(0);
const BEE: BeeId = BeeId(1);

/// The registry, with two colonies and bees of the first one, each with one cell.
fn registry(bees: u64) -> RegistryState {
    let mut registry = RegistryState::default();
    for after in 0..2 {
        let members = vec![beehive_protocol::HiveId(after)];
        registry.apply(&Proposal::Found {
            after: beehive_protocol::ColonyId(after),
            members,
            is_replicated: true,
        });
    }
    (1..=bees).for_each(|cell| claim(&mut registry, &[cell]));
    registry
}

fn claim(registry: &mut RegistryState, cells: &[u64]) {
    let cells = cells.iter().copied().map(CellId).collect();
    registry.apply(&Proposal::Claim { app: APP, cells, colony: id(0) });
}

fn next(log: &LogState, view: &RegistryState) -> Vec<Step> {
    steps(Leader { colony: id(0), log, view }, &BTreeSet::new(), &[])
}

/// Appends all records that follow from a view, and returns the last one.
fn follow(log: &mut LogState, view: &RegistryState) -> Option<Record> {
    let mut last = None;
    while let Some(record) = next(log, view).into_iter().find_map(|step| match step {
        Step::Append(record) => Some(record),
        _ => None,
    }) {
        log.carry_out(&record);
        last = Some(record)
    }
    last
}

/// Appends a record. Without its fence, the log does not know the view on which the record is based.
fn append(log: &mut LogState, record: &Record, is_fenced: bool) {
    let known = log.known;
    log.carry_out(record);
    if !is_fenced {
        log.known = known
    }
}

pub(crate) fn of_drop(is_fenced: bool) {
    let (mut log, mut registry) = (LogState::default(), registry(1));
    let old = registry.clone();
    follow(&mut log, &registry);
    let freeze = Record::Freeze { app: APP, bee: BEE, lanes: vec![], to: id(1), view: old.index() };
    log.carry_out(&freeze);
    registry.apply(&Proposal::Commit { bee: BEE, epoch: Epoch(0), to: id(1) });
    let drop = Record::Drop { app: APP, bee: BEE, view: registry.index() };
    assert!(next(&log, &registry).contains(&Step::Append(drop.clone())));
    append(&mut log, &drop, is_fenced);
    assert_eq!(next(&log, &old), [], "a second copy of a bee that has moved")
}

pub(crate) fn of_told(is_fenced: bool, merges: bool) {
    let (mut log, mut registry) = (LogState::default(), registry(2));
    if merges {
        claim(&mut registry, &[1, 2])
    }
    let old = registry.clone();
    follow(&mut log, &registry);
    if !merges {
        log.carry_out(&Record::Release { app: APP, bee: BEE, floors: vec![], view: registry.index() })
    }
    let what = log.untold.first().cloned().expect("a change that the registry does not know");
    let proposals = next(&log, &registry).into_iter().filter_map(|step| match step {
        Step::Propose(proposal) => Some(proposal),
        _ => None,
    });
    for proposal in proposals.collect::<Vec<_>>() {
        registry.apply(&proposal);
    }
    let told = Record::Told { what, view: registry.index() };
    assert!(next(&log, &registry).contains(&Step::Append(told.clone())));
    append(&mut log, &told, is_fenced);
    assert_eq!(next(&log, &old), [], "a bee that has ended begins again")
}

pub(crate) fn of_stage(is_fenced: bool) {
    let old = registry(0);
    let mut registry = registry(1);
    let (mut source, mut target) = (LogState::default(), LogState::default());
    follow(&mut source, &registry);
    registry.apply(&Proposal::Aim { bee: BEE, epoch: Epoch(0), colony: id(1) });
    follow(&mut source, &registry);
    let [frame] = &frames(&source, APP, BEE, 100)[..] else { panic!("one part") };
    let leader = Leader { colony: id(1), log: &target, view: &registry };
    let record = stage(leader, frame, None).expect("the copy is new");
    append(&mut target, &record, is_fenced);
    let late = steps(Leader { colony: id(1), log: &target, view: &old }, &BTreeSet::new(), &[]);
    assert_eq!(late, [], "a leader that does not know the bee yet gives up the copy");
    let commit = Proposal::Commit { bee: BEE, epoch: Epoch(0), to: id(1) };
    let leader = Leader { colony: id(1), log: &target, view: &registry };
    assert_eq!(steps(leader, &BTreeSet::new(), &[]), [Step::Propose(commit)])
}

pub(crate) fn of_retire(is_fenced: bool) {
    let (mut log, mut registry) = (LogState::default(), registry(2));
    let old = registry.clone();
    follow(&mut log, &registry);
    // bee 2 has handled a message of bee 1, which has ended since
    let lane = LaneId::of_bee(APP, BEE);
    let input = Input { lane, floor: Some(Seq(0)), seq: Seq(0), count: 1, part: Part::WHOLE };
    let inputs = [input].into_iter().collect();
    let consumed = beehive_protocol::Consumed { app: APP, bee: BeeId(2), inputs, visits: vec![] };
    log.carry_out(&Record::Consumed(vec![consumed]));
    registry.apply(&Proposal::Release { bee: BEE });
    log.bees.remove(&(APP, BEE));

    let said = forget(Leader { colony: id(0), log: &log, view: &registry });
    let [Step::Append(record)] = &said[..] else { panic!("the log forgets the lane: {said:?}") };
    assert_eq!(*record, Record::Retire { lanes: vec![lane], view: registry.index() });
    append(&mut log, record, is_fenced);
    assert!(!log.bees[&(APP, BeeId(2))].seen.contains_lane(lane));
    // a late copy of the message is dropped because the lane has ended, or because the leader may not work
    let leader = Leader { colony: id(0), log: &log, view: &old };
    assert!(!leader.may_work() || old.is_retired(lane), "a late message is handled again")
}

#[test]
fn a_dropped_bee_stays_away() {
    of_drop(true)
}

#[test]
fn an_ended_bee_stays_away() {
    of_told(true, false);
    of_told(true, true)
}

#[test]
fn a_staged_copy_is_not_given_up() {
    of_stage(true)
}

#[test]
fn a_forgotten_lane_stays_forgotten() {
    of_retire(true)
}

/// A change that the registry has not confirmed is proposed until it is, and then `Told`.
#[test]
fn a_change_is_proposed_until_the_registry_knows_it() {
    let (mut log, registry) = (LogState::default(), registry(1));
    follow(&mut log, &registry);
    log.carry_out(&Record::Release { app: APP, bee: BEE, floors: vec![], view: registry.index() });
    assert_eq!(log.untold, [Untold::Released { bee: BEE }]);
    let propose = Step::Propose(Proposal::Release { bee: BEE });
    for _ in 0..2 {
        assert_eq!(next(&log, &registry), std::slice::from_ref(&propose))
    }
    let under_way = [Proposal::Release { bee: BEE }];
    let leader = Leader { colony: id(0), log: &log, view: &registry };
    assert_eq!(steps(leader, &BTreeSet::new(), &under_way), [])
}
