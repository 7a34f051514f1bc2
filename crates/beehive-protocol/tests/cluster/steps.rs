//! Tests of single steps: the parts of a copy, splits, and the registry's aims.

use crate::checks::Emission;
use crate::directed::{APP, CELL, quiet};
use crate::world::id;
use beehive_protocol::{
    Aim, AppId, BeeId, CellId, HiveId, Leader, LogState, Proposal, Record, RegistryState, StageFrame,
    StagePart, Step, frames, split, stage,
};
use std::rc::Rc;

/// If a bee ends, bees that have to merge into it no longer have to.
#[test]
fn aims_at_a_bee_that_has_ended_end() {
    let mut registry = RegistryState::default();
    for after in 0..2 {
        let members = vec![HiveId(0)];
        registry.apply(&Proposal::Found {
            after: beehive_protocol::ColonyId(after),
            members,
            is_replicated: true,
        });
    }
    for (cells, colony) in [(vec![1], 0), (vec![2], 1), (vec![1, 2], 0)] {
        let cells = cells.into_iter().map(CellId).collect();
        registry.apply(&Proposal::Claim { app: APP, cells, colony: id(colony) });
    }
    assert_eq!(registry.bee(BeeId(2)).unwrap().aim, Some(Aim::Bee(BeeId(1))));
    registry.apply(&Proposal::Release { bee: BeeId(1) });
    assert_eq!(registry.bee(BeeId(2)).unwrap().aim, None)
}

/// A copy arrives in parts, each of which may be lost, doubled or early.
#[test]
fn the_parts_of_a_copy_are_staged_in_order() {
    let mut world = quiet(None);
    let bee = world.claim(&[CELL], 0);
    world.follow();
    for _ in 0..4 {
        let tag = world.history.next_tag();
        let emission = Emission { tag, app: APP, source: (APP, CELL), cells: vec![CELL] };
        world.send_one(0, (APP, bee), emission, false)
    }
    world.commit_all(0);
    let entry = world.newest().bee(bee).unwrap();
    world.decide(&Proposal::Aim { bee, epoch: entry.epoch, colony: id(1) });
    let view = world.newest().clone();
    let mut source = world.colonies[0].committed.clone();
    let freeze =
        Record::Freeze { app: APP, bee, lanes: source.lanes_of(APP, bee), to: id(1), view: view.index() };
    source.carry_out(&freeze);

    let all = frames(&source, APP, bee, 8);
    assert_eq!(all.len(), 6, "the bee, its cell, and four messages");
    let mut target = LogState::default();
    let propose = |target: &LogState| {
        let leader = Leader { colony: id(1), log: target, view: &view };
        let next = beehive_protocol::steps(leader, &Default::default(), &[]);
        next.iter().any(|step| matches!(step, Step::Propose(Proposal::Commit { .. })))
    };
    for (at, frame) in all.iter().enumerate() {
        for early in &all[at + 1..] {
            assert_eq!(
                stage(Leader { colony: id(1), log: &target, view: &view }, early, Some(early.copy)),
                None
            )
        }
        let record = stage(Leader { colony: id(1), log: &target, view: &view }, frame, Some(frame.copy))
            .expect("the next part");
        target.carry_out(&record);
        for known in &all[..=at] {
            assert_eq!(
                stage(Leader { colony: id(1), log: &target, view: &view }, known, Some(known.copy)),
                None
            )
        }
        assert_eq!(propose(&target), at + 1 == all.len(), "part {at}")
    }
    assert_eq!(target.staged[&(APP, bee)].outbox.len(), 4);
    assert!(matches!(&all[0].part, StagePart::Bee(_)))
}

/// Returns a bee that is about to move, the log that has frozen it, and the registry.
fn leaving() -> (BeeId, LogState, Rc<RegistryState>) {
    let mut world = quiet(None);
    let bee = world.claim(&[CELL], 0);
    world.follow();
    world.commit_all(0);
    let entry = world.newest().bee(bee).unwrap();
    world.decide(&Proposal::Aim { bee, epoch: entry.epoch, colony: id(1) });
    let view = world.newest().clone();
    let mut source = world.colonies[0].committed.clone();
    source.bees.get_mut(&(APP, bee)).unwrap().cells.extend([CellId(76)]);
    source.carry_out(&Record::Freeze { app: APP, bee, lanes: vec![], to: id(1), view: view.index() });
    (bee, source, view)
}

/// Another leader of the source may send another copy. Its parts do not mix with those that are staged.
#[test]
fn parts_of_two_copies_are_not_mixed() {
    let (bee, mut source, view) = leaving();
    let one = frames(&source, APP, bee, 8);
    source.bees.get_mut(&(APP, bee)).unwrap().cells.extend([CellId(77), CellId(78)]);
    let other = frames(&source, APP, bee, 8);
    assert_eq!((one.len(), other.len()), (2, 4));
    assert_ne!(one[0].copy, other[0].copy);

    let mut target = LogState::default();
    let staged = |target: &LogState, frame, staging| {
        stage(Leader { colony: id(1), log: target, view: &view }, frame, staging)
    };
    let first = staged(&target, &one[0], None).expect("nothing is staged");
    target.carry_out(&first);
    assert_eq!(staged(&target, &other[1], Some(one[0].copy)), None, "it belongs to another copy");
    assert_eq!(staged(&target, &one[1], None), None, "a new leader does not know the copy");
    for frame in &other {
        let copy = if frame.at == 0 { one[0].copy } else { frame.copy };
        let next = staged(&target, frame, Some(copy)).expect("the other copy begins");
        target.carry_out(&next)
    }
    assert!(target.staged[&(APP, bee)].is_complete());
    assert_eq!(
        staged(&target, &one[0], Some(other[0].copy)),
        None,
        "the registry may have committed the copy"
    );
}

/// A bee that has split keeps its other cells, and the new one remembers what the old one has handled.
#[test]
fn a_bee_splits_by_one_record() {
    let mut world = quiet(None);
    let bee = world.claim(&[CELL], 0);
    let cells = [CELL, CellId(2)].into_iter().collect();
    world.decide(&Proposal::Claim { app: APP, cells, colony: id(0) });
    world.follow();
    world.take_given(0);
    world.commit_all(0);
    let view = world.newest().clone();
    let log = world.colonies[0].committed.clone();
    let leader = Leader { colony: id(0), log: &log, view: &view };
    assert_eq!(split(leader, APP, bee, vec![CELL, CellId(2)], vec![]), None, "a bee keeps a cell");
    let key = crate::messages::key_of(CellId(2));
    let record = split(leader, APP, bee, vec![CellId(2)], vec![(0, key)]).expect("an id is reserved");
    let Record::Split { new, .. } = record else { panic!("{record:?}") };
    world.append(0, record, None, Vec::new());
    world.follow();
    let registry = world.newest();
    assert_eq!(registry.owner(APP, CellId(2)), Some(new));
    assert_eq!(registry.owner(APP, CELL), Some(bee));
    assert!(!registry.is_reserved(new));
    assert_eq!(world.colonies[0].committed.untold, [])
}

/// Another hive may send anything. What does not fit together is refused.
#[test]
fn a_part_that_no_leader_sends_is_refused() {
    let (bee, source, view) = leaving();
    let parts = frames(&source, APP, bee, 8);
    let mut target = LogState::default();
    let staged = |target: &LogState, frame: &StageFrame| {
        stage(Leader { colony: id(1), log: target, view: &view }, frame, Some(frame.copy))
    };
    let bad: [fn(&mut StageFrame); 8] = [
        |frame| frame.of = frame.at,
        |frame| (frame.at, frame.of) = (u32::MAX, u32::MAX),
        |frame| frame.known = 0,
        |frame| frame.known = u64::MAX,
        |frame| frame.app = AppId(APP.0 + 1),
        |frame| frame.bee = BeeId(999),
        |frame| frame.epoch = frame.epoch.next(),
        |frame| frame.to = id(2),
    ];
    for (at, part) in parts.iter().enumerate() {
        for (number, spoil) in bad.iter().enumerate() {
            let mut frame = part.clone();
            spoil(&mut frame);
            assert_eq!(staged(&target, &frame), None, "part {at}, spoilt in way {number}")
        }
        let other = StageFrame { part: parts[1 - at.min(1)].part.clone(), ..part.clone() };
        assert_eq!(staged(&target, &other), None, "only the first part is the bee itself");
        let record = staged(&target, part).expect("the part itself is staged");
        target.carry_out(&record)
    }
    assert!(target.staged[&(APP, bee)].is_complete());
}
