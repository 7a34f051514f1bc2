//! A colony whose log was told by a leader with a newer replica, step by step: what a new leader with an older replica
//! does if one kind of record does not raise the fence, and that it does nothing if all do.

use crate::world::{APP, Kind, kind};
use beehive_protocol::{
    BeeId, CellId, ColonyId, Epoch, HiveId, Hosting, HostingRecord, Proposal, RegistryState, Step, steps,
};
use std::collections::BTreeSet;

/// The registry, with two colonies and a bee of the first one.
fn registry() -> RegistryState {
    let mut registry = RegistryState::default();
    for after in 0..2 {
        let (after, members) = (ColonyId(after), vec![HiveId(after)]);
        registry.apply(&Proposal::Found { after, members, is_replicated: true });
    }
    claim(&mut registry, 1);
    registry
}

fn claim(registry: &mut RegistryState, cell: u64) {
    let cells = [CellId(cell)].into_iter().collect();
    registry.apply(&Proposal::Claim { app: APP, cells, colony: ColonyId(1) });
}

fn next(log: &Hosting, view: &RegistryState) -> Vec<Step> {
    steps(ColonyId(1), log, view, &BTreeSet::new(), &[])
}

/// Appends the only record that follows from a view.
fn follow(log: &mut Hosting, view: &RegistryState, want: Kind) -> HostingRecord {
    let records = next(log, view).into_iter().filter_map(|step| match step {
        Step::Append(record) if kind(&record) == want => Some(record),
        _ => None,
    });
    let [record] = &records.collect::<Vec<_>>()[..] else { panic!("no {want:?}: {:?}", next(log, view)) };
    log.apply(record);
    record.clone()
}

/// Returns what a leader with an old replica does after `record`, with and without its fence.
fn after(
    log: &Hosting,
    record: HostingRecord,
    unfenced: HostingRecord,
    old: &RegistryState,
) -> [Vec<Step>; 2] {
    [record, unfenced].map(|record| {
        let mut log = log.clone();
        log.apply(&record);
        next(&log, old)
    })
}

const BEE: BeeId = BeeId(1);

fn creates(bee: BeeId, view: &RegistryState) -> Vec<Step> {
    vec![Step::Append(HostingRecord::Create { bee, view: view.index() })]
}

#[test]
fn of_drop() {
    let (mut log, mut registry) = (Hosting::default(), registry());
    let old = registry.clone();
    follow(&mut log, &registry, Kind::Create);
    // a move for which the log needs no newer view: the operator asked an earlier leader
    log.apply(&HostingRecord::Freeze { bee: BEE, to: ColonyId(2), view: old.index() });
    registry.apply(&Proposal::Commit { bee: BEE, epoch: Epoch(0), to: ColonyId(2) });
    let drop = HostingRecord::Drop { bee: BEE, view: registry.index() };
    assert!(next(&log, &registry).contains(&Step::Append(drop.clone())));

    let [fenced, unfenced] = after(&log, drop, HostingRecord::Drop { bee: BEE, view: 0 }, &old);
    assert_eq!(fenced, []);
    assert_eq!(unfenced, creates(BEE, &old), "the second copy that the fence prevents");
}

#[test]
fn of_told() {
    // released, and merged into another bee
    for merges in [false, true] {
        let (mut log, mut registry) = (Hosting::default(), registry());
        claim(&mut registry, 2);
        let cells = [CellId(1), CellId(2)].into_iter().collect();
        registry.apply(&Proposal::Claim { app: APP, cells, colony: ColonyId(1) });
        for _ in 0..2 {
            let created = next(&log, &registry).into_iter().find_map(|step| match step {
                Step::Append(record @ HostingRecord::Create { .. }) => Some(record),
                _ => None,
            });
            log.apply(&created.expect("two new bees"))
        }
        let old = registry.clone();
        let gone = match merges {
            true => {
                let HostingRecord::Fuse { from, .. } = follow(&mut log, &registry, Kind::Fuse) else {
                    panic!("no fuse")
                };
                from
            }
            false => {
                log.apply(&HostingRecord::Release { bee: BEE });
                BEE
            }
        };
        let proposal = next(&log, &registry).into_iter().find_map(|step| match step {
            Step::Propose(proposal) => Some(proposal),
            _ => None,
        });
        registry.apply(&proposal.expect("the registry is told"));

        let what = log.untold()[0].clone();
        let told = HostingRecord::Told { what: what.clone(), view: registry.index() };
        assert!(next(&log, &registry).contains(&Step::Append(told.clone())));
        let [fenced, unfenced] = after(&log, told, HostingRecord::Told { what, view: 0 }, &old);
        assert_eq!(fenced, []);
        assert_eq!(unfenced, creates(gone, &old), "the bee comes back without the fence");
    }
}
