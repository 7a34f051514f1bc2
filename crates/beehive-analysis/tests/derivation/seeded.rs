//! Proves that the tests would detect a broken analysis: with a seeded fault, the analysis accepts bodies
//! that it should refuse, or derives maps that name too few cells. (`beehive-core/tests/maps` shows at run
//! time that these maps are too small.)

#[path = "../../examples/random_handlers/faults.rs"]
mod faults;

use beehive_analysis::{Derivation, Faults, derivation, faulty_derivation};

fn sound(source: &str) -> Derivation {
    derivation(Default::default(), source.parse().expect("tokens")).expect("parses")
}

fn broken(source: &str, faults: Faults) -> Derivation {
    faulty_derivation(Default::default(), source.parse().expect("tokens"), faults).expect("parses")
}

#[test]
fn every_seeded_bug_changes_every_one_of_its_maps() {
    let all = faults::seeded();
    assert_eq!(all.len(), 24);
    for s in all {
        for body in s.bodies {
            let source = faults::block(&s, &[*body]);
            let (sound, broken) = (sound(&source), broken(&source, s.faults));
            assert!(broken.errors.is_empty(), "{}: {:?}", s.app, broken.errors);
            // some are refused by a check in the compiler
            let refused = !sound.errors.is_empty() || sound.block.to_string().contains("still_bound");
            let (sound, broken) = (&sound.handlers[1], &broken.handlers[1]);
            assert!(refused || sound.map.to_string() != broken.map.to_string(), "{}: {body}", s.app);
        }
    }
}

/// Checks that the maps used by the run-time proof are the ones that the analysis derives today.
#[test]
fn the_checked_in_maps_are_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../beehive-core/tests/maps/seeded.rs");
    let Ok(known) = std::fs::read_to_string(path) else {
        println!("skipped: {path} is not there (a packaged crate)");
        return;
    };

    let current = faults::module().expect("all are accepted with their bug");
    assert!(
        known == current,
        "write them again: cargo run -p beehive-analysis --example random_handlers -- faults > {path}"
    );
}
