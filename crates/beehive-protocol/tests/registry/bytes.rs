//! The decoder of the registry: it never panics, and never returns a state that breaks an invariant.

use crate::model::Model;
use crate::random::Random;
use beehive_protocol::codec::{decode_many, encode_many};
use beehive_protocol::limits::REGISTRY_NUMBER_MAX;
use beehive_protocol::{
    Aim, AppId, AppShapes, BeeId, CellId, ColonyId, Epoch, HiveId, Incarnation, LoggedSettings, Proposal,
    RegistryState,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Decodes bytes. If they are a state, checks it, and that its own bytes are read back.
fn decoded(bytes: &[u8]) -> bool {
    let Ok(state) = decode_many::<RegistryState>("a registry", bytes) else { return false };
    assert_eq!(state.check(), Ok(()), "the decoder let it pass");
    let again = encode_many(&state);
    let copy: RegistryState = decode_many("a registry", &again).expect("its own bytes");
    assert_eq!(encode_many(&copy), again);
    true
}

/// Returns the bytes of a small state in which everything occurs.
fn rich(seed: u64, proposals: usize) -> (RegistryState, Model) {
    let mut random = Random(seed);
    let (mut state, mut model) = (RegistryState::default(), Model::default());
    for _ in 0..proposals {
        let proposal = random.proposal(&model);
        state.apply(&proposal);
        model.apply(&proposal);
    }
    (state, model)
}

#[test]
fn random_bytes_are_no_state_that_breaks_an_invariant() {
    let mut random = Random(3);
    for _ in 0..20_000 {
        let length = random.below(60);
        let bytes: Vec<u8> = (0..length)
            .map(|_| random.below(if random.0.is_multiple_of(3) { 256 } else { 4 }) as u8)
            .collect();
        decoded(&bytes);
    }
}

/// One or two bytes of a state are changed, or its end is cut off. Most of these states are decoded, because most bytes
/// are ids.
#[test]
fn a_damaged_state_is_refused_or_keeps_the_invariants() {
    let mut random = Random(5);
    let (mut accepted, mut refused) = (0, 0);
    for seed in 1..16 {
        let bytes = encode_many(&rich(seed, 300).0);
        assert!(decoded(&bytes));
        for _ in 0..200 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random.below(2) {
                let at = random.below(bytes.len() as u64) as usize;
                damaged[at] = if random.one_in(2) {
                    random.below(256) as u8
                } else {
                    damaged[at] ^ 1 << random.below(3)
                };
            }
            if random.one_in(8) {
                damaged.truncate(random.below(bytes.len() as u64) as usize)
            }
            match decoded(&damaged) {
                true => accepted += 1,
                false => refused += 1,
            }
        }
    }
    assert!(accepted > 300 && refused > 300, "{accepted} accepted, {refused} refused");
}

/// Whatever the decoder accepts can be worked with: no proposal panics, and the invariants hold afterwards.
#[test]
fn a_damaged_state_takes_proposals() {
    let mut random = Random(9);
    for seed in 1..20 {
        let (state, model) = rich(seed, 300);
        let bytes = encode_many(&state);
        for _ in 0..60 {
            let mut damaged = bytes.clone();
            let at = random.below(bytes.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            let Ok(mut state) = decode_many::<RegistryState>("a registry", &damaged) else { continue };
            for _ in 0..20 {
                state.apply(&random.proposal(&model));
            }
            assert_eq!(state.check(), Ok(()));
        }
    }
}

/// At the ends of the ranges of numbers, proposals have no effect. They do not panic.
#[test]
fn numbers_that_run_out_have_no_effect() {
    let mut image = small();
    image.newest = REGISTRY_NUMBER_MAX;
    image.hives.insert(HiveId(2), (Incarnation(u32::MAX), None));
    image.bees.get_mut(&BeeId(2)).unwrap().2 = Epoch(u32::MAX);
    let colony = &mut image.colonies[0];
    (colony.1, colony.4, colony.5) = (u32::MAX, u64::MAX, Some(HiveId(1)));
    let mut state: RegistryState = decode_many("a registry", &encode_many(&image)).unwrap();

    let cells = [CellId(77)].into_iter().collect();
    let after = BeeId(5);
    let shapes = AppShapes { name: "bank".into(), dictionaries: Vec::new() };
    let settings = LoggedSettings { version: 0, table: String::new() };
    let before = state.clone();
    let refused = [
        Proposal::Claim { app: AppId(0), cells, colony: ColonyId(1) },
        Proposal::Reserve { colony: ColonyId(1), after, count: u32::MAX },
        Proposal::Reserve { colony: ColonyId(1), after, count: 1 },
        Proposal::Join { hive: HiveId(2), after: Incarnation(u32::MAX) },
        Proposal::Join { hive: HiveId(3), after: Incarnation(0) },
        Proposal::Commit { bee: BeeId(2), epoch: Epoch(u32::MAX), to: ColonyId(1) },
        Proposal::Found { after: ColonyId(u32::MAX), members: vec![HiveId(1)], is_replicated: true },
        Proposal::Members { colony: ColonyId(1), version: 0, members: vec![HiveId(1)], is_replicated: true },
        Proposal::Members { colony: ColonyId(0), version: 1, members: vec![HiveId(1)], is_replicated: true },
        Proposal::Leader { colony: ColonyId(1), term: 0, hive: HiveId(1) },
        Proposal::App { app: AppId(0), version: 0, replication: 1, shapes },
        Proposal::Settings { app: AppId(0), settings },
    ];
    for (number, proposal) in (before.index() + 1..).zip(&refused) {
        let decision = state.apply(proposal);
        assert_eq!(decision, beehive_protocol::Decision::Void { index: number }, "{proposal:?}");
    }
    assert_eq!(state.check(), Ok(()));
    assert_eq!((state.bees(), state.cells()), (before.bees(), before.cells()));
}

type Hive = (Incarnation, Option<u64>);
/// Members, version, whether it is replicated, whether it is dead, term, leader, newest reserved id.
type Colony = (Vec<HiveId>, u32, bool, bool, u64, Option<HiveId>, BeeId);
type App = (u32, u8, AppShapes, LoggedSettings);
/// App, colony, epoch, aim, lanes, cells.
type Bee = (AppId, ColonyId, Epoch, Option<Aim>, Vec<u64>, Vec<CellId>);

/// The canonical form of a state, as it is encoded.
#[derive(Clone, Serialize)]
struct Image {
    index: u64,
    newest: u64,
    hives: BTreeMap<HiveId, Hive>,
    colonies: Vec<Colony>,
    apps: BTreeMap<AppId, App>,
    reserved: BTreeMap<BeeId, ColonyId>,
    bees: BTreeMap<BeeId, Bee>,
}

/// Returns two colonies with two bees each, which are of two apps.
fn small() -> Image {
    let colony = |id| (vec![HiveId(1), HiveId(2)], 0, true, false, 1, Some(HiveId(2)), BeeId(id));
    let shapes = |name: &str| AppShapes { name: name.into(), dictionaries: Vec::new() };
    let app = |name| (1, 3, shapes(name), LoggedSettings { version: 2, table: "a = 1".into() });
    let bee = |app, colony, lanes: &[u64], cells: &[u64]| {
        let cells = cells.iter().map(|cell| CellId(*cell)).collect();
        (AppId(app), ColonyId(colony), Epoch(1), None, lanes.to_vec(), cells)
    };
    Image {
        index: 40,
        newest: 12,
        hives: BTreeMap::from([(HiveId(1), (Incarnation(1), Some(1))), (HiveId(2), (Incarnation(2), None))]),
        colonies: vec![colony(5), colony(0)],
        apps: BTreeMap::from([(AppId(0), app("bank")), (AppId(1), app("shop"))]),
        reserved: BTreeMap::from([(BeeId(4), ColonyId(1)), (BeeId(5), ColonyId(1))]),
        bees: BTreeMap::from([
            (BeeId(2), bee(0, 1, &[2], &[10, 20])),
            (BeeId(3), bee(0, 2, &[9, 3, 6], &[11])),
            (BeeId(7), bee(1, 1, &[8], &[10])),
            (BeeId(10), bee(1, 2, &[10], &[12])),
        ]),
    }
}

/// The decoder refuses bytes that describe an impossible registry, for each of its invariants.
#[test]
fn a_state_that_breaks_an_invariant_is_not_decoded() {
    let decode = |image: &Image| {
        decode_many::<RegistryState>("a registry", &encode_many(image)).map_err(|error| error.why)
    };
    let good = decode(&small()).unwrap();
    assert_eq!(encode_many(&good), encode_many(&small()));

    type Break = fn(&mut Image);
    let breaks: [(&str, Break); 29] = [
        ("does not fit into a lane", |image| image.newest = REGISTRY_NUMBER_MAX + 1),
        ("a hive never joined", |image| image.hives.get_mut(&HiveId(1)).unwrap().0 = Incarnation(0)),
        ("no members, or too many", |image| image.colonies[0].0.clear()),
        ("no members, or too many", |image| image.colonies[0].0 = (0..65).map(HiveId).collect()),
        ("the members of a colony are not in order", |image| image.colonies[0].0.reverse()),
        ("led by a hive that is no member", |image| image.colonies[0].5 = Some(HiveId(3))),
        ("led by a hive that is no member", |image| image.colonies[0].4 = 0),
        ("a dead colony has a leader", |image| (image.colonies[0].2, image.colonies[0].3) = (false, true)),
        ("a replicated colony is dead", |image| (image.colonies[0].3, image.colonies[0].5) = (true, None)),
        ("a reserved id was not assigned", |image| image.colonies[1].6 = BeeId(13)),
        ("two apps have the same name", |image| {
            image.apps.get_mut(&AppId(1)).unwrap().2.name = "bank".into()
        }),
        ("an app was never declared", |image| image.apps.get_mut(&AppId(1)).unwrap().0 = 0),
        ("reserved for a colony that does not exist", |image| {
            image.reserved.insert(BeeId(4), ColonyId(3));
        }),
        ("newer than the newest one of its colony", |image| image.colonies[0].6 = BeeId(4)),
        ("too many reserved ids", |image| {
            (image.newest, image.colonies[0].6) = (9_000, BeeId(9_000));
            image.reserved = (100..4_197).map(|id| (BeeId(id), ColonyId(1))).collect()
        }),
        ("in a colony that does not exist", |image| image.bees.get_mut(&BeeId(2)).unwrap().1 = ColonyId(0)),
        ("in a colony that does not exist", |image| {
            let colony = &mut image.colonies[1];
            (colony.2, colony.3, colony.5) = (false, true, None)
        }),
        ("a bee has no cells", |image| image.bees.get_mut(&BeeId(2)).unwrap().5.clear()),
        ("the cells of a bee are not in order", |image| image.bees.get_mut(&BeeId(2)).unwrap().5.reverse()),
        ("a cell has two owners", |image| image.bees.get_mut(&BeeId(3)).unwrap().5[0] = CellId(20)),
        ("a bee has no lane", |image| image.bees.get_mut(&BeeId(2)).unwrap().4.clear()),
        ("the lanes of a bee are not in order", |image| {
            image.bees.get_mut(&BeeId(3)).unwrap().4 = vec![9, 6, 3]
        }),
        ("a number is used twice", |image| image.bees.get_mut(&BeeId(3)).unwrap().4 = vec![3, 4]),
        ("a number is used twice", |image| image.bees.get_mut(&BeeId(3)).unwrap().4 = vec![3, 3]),
        ("a number is used twice", |image| image.bees.get_mut(&BeeId(2)).unwrap().4 = vec![2, 7]),
        ("a number is used that was not assigned", |image| image.newest = 9),
        ("move to a colony that does not exist, or that has it", |image| {
            image.bees.get_mut(&BeeId(2)).unwrap().3 = Some(Aim::Colony(ColonyId(1)))
        }),
        ("merge into one that does not exist, or is of another app", |image| {
            image.bees.get_mut(&BeeId(2)).unwrap().3 = Some(Aim::Bee(BeeId(7)))
        }),
        ("aims form a cycle", |image| {
            image.bees.get_mut(&BeeId(2)).unwrap().3 = Some(Aim::Bee(BeeId(3)));
            image.bees.get_mut(&BeeId(3)).unwrap().3 = Some(Aim::Bee(BeeId(2)))
        }),
    ];
    for (why, break_it) in breaks {
        let mut image = small();
        break_it(&mut image);
        let result = decode(&image);
        assert!(result.as_ref().is_err_and(|error| error.contains(why)), "{why}: {result:?}");
    }
}
