//! The registry survives the loss of its leader, and answers that are lost.

use crate::hives::{ALL, Hives, Ledger, until};
use beehive::registry::{ColonyId, Proposal, RegistryState};
use beehive_core::registry::{Decision, Registry};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn reserve() -> Proposal {
    Proposal::Reserve { colony: ColonyId(1), after: beehive::BeeId(0), count: 3 }
}

fn reserved(registry: &Arc<dyn Registry>) -> usize {
    let mut count = 0;
    registry.read(&mut |state: &RegistryState| count = state.reserved(ColonyId(1)).count());
    count
}

#[test]
fn proposals_survive_the_loss_of_the_leader() {
    let mut hives = Hives::start();
    let leader = hives.member(0).registry_leader().unwrap();
    let leader = ALL.iter().position(|hive| *hive == leader).unwrap();
    let other = (leader + 1) % 3;
    let registry = hives.member(other).registry();
    hives.kill(leader);
    // nobody leads the registry when it is proposed
    let decisions = hives.runtime(other).block_on(registry.propose(vec![reserve(), reserve()])).unwrap();
    assert!(
        matches!(decisions[..], [Decision::Reserved { count: 3, .. }, Decision::Void { .. }]),
        "{decisions:?}"
    );
    for hive in hives.running() {
        let replica = hives.member(hive).registry();
        until("every replica knows the decision", || replica.index() >= decisions[1].index());
        assert_eq!(reserved(&replica), 3);
    }
    // cells without an owner get one
    let ledger = Ledger::default();
    (0..9).for_each(|key| ledger.must_count(hives.hive(other), key));
}

#[test]
fn a_proposal_whose_answer_is_lost_is_decided_once() {
    let hives = Hives::start();
    let leader = hives.member(0).registry_leader().unwrap();
    let other = ALL.iter().position(|hive| *hive != leader).unwrap();
    let registry = hives.member(other).registry();
    hives.net.lose_answer();
    let decisions = hives.runtime(other).block_on(registry.propose(vec![reserve()])).unwrap();
    assert_eq!(hives.net.lost.load(Ordering::Relaxed), 1);
    // the second attempt changes nothing
    assert!(matches!(decisions[..], [Decision::Void { .. }]), "{decisions:?}");
    until("the replica knows the decision", || registry.index() >= decisions[0].index());
    assert_eq!(reserved(&registry), 3);
}
