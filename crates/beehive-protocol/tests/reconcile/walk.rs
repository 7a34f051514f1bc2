//! Random walks, without and with a broken rule.

use crate::world::{Broken, Kind, World};
use std::collections::BTreeMap;

fn walk(seed: u64, broken: Broken) -> BTreeMap<Kind, u64> {
    let mut world = World::new(seed, 2 + seed as usize % 2, broken);
    for _ in 0..500 {
        world.step()
    }
    world.rest();
    world.kinds
}

fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let count = if std::env::var_os("BEEHIVE_LONG").is_some() { count * 100 } else { count };
    (1..=count).map(|seed| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
}

#[test]
fn bees_are_where_the_registry_says_and_lose_nothing() {
    let mut kinds = BTreeMap::new();
    for seed in seeds(100) {
        for (kind, count) in walk(seed, Broken::Nothing) {
            *kinds.entry(kind).or_insert(0) += count
        }
    }
    println!("{kinds:?}");
    assert_eq!(kinds.len(), 11, "each kind of record occurred: {kinds:?}");
    assert!(kinds.values().all(|count| *count >= 10), "{kinds:?}");
}

/// Returns the first seed with which a broken rule is noticed.
fn noticed(broken: Broken, seeds: impl Iterator<Item = u64>) -> Option<(usize, String)> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut found = None;
    for (at, seed) in seeds.enumerate() {
        if let Err(panic) = std::panic::catch_unwind(|| walk(seed, broken)) {
            let text = panic.downcast_ref::<String>().cloned();
            found = Some((at, text.unwrap_or_default()));
            break;
        }
    }
    std::panic::set_hook(hook);
    found
}

/// The walk notices each broken rule. Of the fences, those on `Create`, `Freeze`, `Adopt`, `Thaw`, `Fuse` and `Unstage` are
/// not needed for what is checked here: one rule for all records is simpler, and what is outside compares fences, too.
#[test]
fn a_broken_rule_is_noticed() {
    let all = [
        Broken::ActiveWhenStaged,
        Broken::CommitBeforeStage,
        Broken::NoFence,
        Broken::DropWhenSent,
        Broken::BusyChanges,
        Broken::Unfenced(Kind::Drop),
        Broken::Unfenced(Kind::Told),
        Broken::Unfenced(Kind::Stage),
    ];
    for broken in all {
        let found = noticed(broken, seeds(1_000));
        println!("{broken:?}: {found:?}");
        assert!(found.is_some(), "nothing notices {broken:?}");
    }
}

/// Prints which of the other fences the walk misses.
#[test]
#[ignore = "shows what the walk cannot"]
fn fences_that_the_walk_does_not_need() {
    for kind in [Kind::Create, Kind::Freeze, Kind::Adopt, Kind::Thaw, Kind::Fuse, Kind::Unstage] {
        println!("{kind:?}: {:?}", noticed(Broken::Unfenced(kind), seeds(2_000)));
    }
}
