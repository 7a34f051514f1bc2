//! Random proposals to the registry and to the model, half of them late or repeated.

use crate::model::Model;
use crate::random::{APPS, CELLS, Random};
use beehive_protocol::codec::{decode_many, encode_many, split_integer};
use beehive_protocol::{Decision, Proposal, RegistryState};
use std::collections::{BTreeMap, VecDeque};

/// Number of proposals from which late ones are chosen.
const PAST: usize = 4_096;

/// Number of proposals of each seed.
fn proposals() -> usize {
    if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 } else { 40_000 }
}

/// Checks whether a proposal that took effect never does so again. The same claim may create another bee after the first
/// one has ended, and a bee that lost its aim may be aimed again.
fn happens_once(proposal: &Proposal) -> bool {
    !matches!(proposal, Proposal::Claim { .. } | Proposal::Aim { .. })
}

/// Returns the encoded state without the number of decided proposals.
fn contents(state: &RegistryState) -> Vec<u8> {
    let bytes = encode_many(state);
    let (_index, rest) = split_integer(&bytes).unwrap();
    rest.to_vec()
}

/// How often a kind of proposal took effect, or had none, and the first such proposal.
#[derive(Debug)]
struct Kind {
    count: usize,
    _first: String,
}

#[test]
fn the_registry_decides_as_the_rules_say() {
    let mut kinds = BTreeMap::new();
    for seed in [1, 2] {
        let mut random = Random(seed);
        let (mut state, mut model) = (RegistryState::default(), Model::default());
        let mut past: Vec<(Proposal, bool)> = Vec::new();
        let mut recent: VecDeque<(Proposal, bool)> = VecDeque::new();
        let count = proposals() / 2;

        for number in 0..count {
            let from = if random.one_in(2) { recent.make_contiguous() } else { &past[..] };
            let late = random.pick(from.iter()).filter(|_| random.one_in(2)).cloned();
            let is_repeated =
                late.as_ref().is_some_and(|(proposal, took_effect)| *took_effect && happens_once(proposal));
            let proposal = late.map_or_else(|| random.proposal(&model), |(proposal, _)| proposal);

            let decision = state.apply(&proposal);
            assert_eq!(decision, model.apply(&proposal), "seed {seed}, number {number}: {proposal:?}");
            let took_effect = !matches!(decision, Decision::Void { .. });
            assert!(!(is_repeated && took_effect), "it took effect twice: {proposal:?}");
            assert_eq!(decision.index(), number as u64 + 1);
            let variant = encode_many(&proposal)[0];
            let kind = kinds.entry((variant, took_effect));
            kind.or_insert_with(|| Kind { count: 0, _first: format!("{proposal:?}") }).count += 1;

            model.compare(&state, CELLS, APPS);
            if number % 500 == 0 {
                model.compare_members(&state);
                assert_eq!(state.check(), Ok(()), "seed {seed}, number {number}");
                let copy: RegistryState = decode_many("a registry", &encode_many(&state)).unwrap();
                assert_eq!(copy.check(), Ok(()));
                assert_eq!(encode_many(&copy), encode_many(&state));
                state = copy
            }
            // The last ones are repeated soon, others at any time later.
            recent.push_back((proposal, took_effect));
            if recent.len() > 4 {
                let late = recent.pop_front().unwrap();
                match past.len() < PAST {
                    true => past.push(late),
                    false => past[random.below(PAST as u64) as usize] = late,
                }
            }
        }
    }

    // A walk that never gets anywhere would prove nothing.
    for kind in kinds.values() {
        assert!(kind.count >= proposals() / 20_000, "{kind:?}");
    }
    assert_eq!(kinds.len(), 2 * 17, "each of the 17 kinds of proposals took effect and did not: {kinds:#?}");
}

/// A proposal that is repeated immediately changes nothing.
#[test]
fn a_repeated_proposal_changes_nothing() {
    let mut random = Random(4);
    let (mut state, mut model) = (RegistryState::default(), Model::default());
    for _ in 0..1_500 {
        let proposal = random.proposal(&model);
        let first = state.apply(&proposal);
        model.apply(&proposal);
        let before = contents(&state);
        let second = state.apply(&proposal);
        model.apply(&proposal);
        assert_eq!(contents(&state), before, "{proposal:?}");

        match (first, second) {
            (
                Decision::Owner { root, merging, .. },
                Decision::Owner { root: same, created, merging: still, .. },
            ) => assert_eq!((same, created, still), (root, false, merging)),
            (_, second) => assert!(matches!(second, Decision::Void { .. }), "{proposal:?}: {second:?}"),
        }
    }
}

/// Two registries with the same bees have the same bytes, even if their tables have another history.
#[test]
fn equal_states_have_equal_bytes() {
    let mut random = Random(7);
    let (mut state, mut model) = (RegistryState::default(), Model::default());
    for _ in 0..5_000 {
        let proposal = random.proposal(&model);
        state.apply(&proposal);
        model.apply(&proposal);
    }
    // The copy has its entries in the order of the bytes, the original in the order of their creation.
    let copy: RegistryState = decode_many("a registry", &encode_many(&state)).unwrap();
    let mut pair = [state, copy];
    for _ in 0..5_000 {
        let proposal = random.proposal(&model);
        model.apply(&proposal);
        let [one, other] = &mut pair;
        assert_eq!(one.apply(&proposal), other.apply(&proposal));
    }
    assert_eq!(encode_many(&pair[0]), encode_many(&pair[1]));
    assert_eq!(pair[0], pair[1]);
}
