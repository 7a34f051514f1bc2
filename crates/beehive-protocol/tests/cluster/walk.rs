//! Random walks.

use crate::mutant::{Kind, Mutant};
use crate::world::World;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Steps of a walk with faults.
const STEPS: usize = 700;

/// Checks whether nothing but the fence itself shows that records of this kind raise it. The others forget something, or
/// judge that something is absent.
pub(crate) fn is_harmless(kind: Kind) -> bool {
    matches!(kind, Kind::Create | Kind::Freeze | Kind::Adopt | Kind::Thaw | Kind::Fuse | Kind::Unstage)
}

pub(crate) fn walk(seed: u64, mutant: Option<Mutant>, is_traced: bool) -> World {
    let mut world = World::new(seed, 2 + seed as usize % 2, mutant);
    world.trace = is_traced.then(String::new);
    for _ in 0..STEPS {
        world.step()
    }
    world.rest();
    world
}

/// Returns seeds that differ in many bits.
pub(crate) fn seeds(count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(|seed| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// `BEEHIVE_SEEDS` sets the number of seeds.
pub(crate) fn count_of_seeds() -> u64 {
    std::env::var("BEEHIVE_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

#[test]
fn a_cluster_keeps_the_invariants_and_comes_to_rest() {
    let (began, mut counts, mut messages, mut handled) = (Instant::now(), BTreeMap::new(), 0, 0);
    let only = std::env::var("BEEHIVE_SEED").ok().and_then(|seed| seed.parse().ok());
    let count = count_of_seeds().max(only.map_or(0, |only: usize| only as u64 + 1));
    for (at, seed) in seeds(count).enumerate().filter(|(at, _)| only.is_none_or(|only| only == *at)) {
        let world = match catch_unwind(AssertUnwindSafe(|| walk(seed, None, false))) {
            Ok(world) => world,
            Err(_) => {
                panic!("seed {at}: BEEHIVE_SEED={at} cargo test -p beehive-protocol --test cluster keeps")
            }
        };
        let (emitted, done) = world.history.counts();
        (messages, handled) = (messages + emitted, handled + done);
        for (kind, count) in world.counts {
            *counts.entry(kind).or_insert(0) += count
        }
    }
    println!(
        "{count} seeds in {:.1} s, {messages} messages, {handled} handled",
        began.elapsed().as_secs_f64()
    );
    println!("{counts:?}");
    assert_eq!(messages, handled);
    if only.is_none() {
        let kinds =
            ["create", "freeze", "stage", "unstage", "adopt", "drop", "thaw", "fuse", "split", "release"];
        for kind in kinds.into_iter().chain(["told", "retire", "elected", "refused", "crashed", "deposed"]) {
            assert!(counts.get(kind).is_some_and(|of| *of * 10 >= count), "{kind}: {counts:?}")
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in seeds(5) {
        let [first, second] = [(); 2].map(|()| walk(seed, None, true).trace.expect("it is traced"));
        assert!(first.len() > 10_000, "{} bytes", first.len());
        assert!(first == second, "seed {seed}")
    }
}
