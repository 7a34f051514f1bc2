//! A record has the same effect on a state that contains no bees but those that it names.

use beehive_protocol::{Entry, LogState, Record};

/// Applies an entry, which must take effect.
pub(crate) fn apply(state: &mut LogState, entry: &Entry) {
    let named = entry.record.bees();
    let mut rest = state.clone();
    let mut part = state.clone();
    part.bees.retain(|bee, _| named.contains(bee));
    rest.bees.retain(|bee, _| !named.contains(bee));

    assert!(state.apply(entry) && part.apply(entry));
    if let Record::Retire { lanes, .. } = &entry.record {
        rest.bees.values_mut().for_each(|bee| lanes.iter().for_each(|lane| bee.seen.forget(*lane)))
    }
    assert!(
        part.bees.keys().all(|bee| named.contains(bee)),
        "{:?} makes a bee that it does not name",
        entry.record
    );
    part.bees.append(&mut rest.bees);
    assert!(part == *state, "{:?} depends on a bee that it does not name", entry.record)
}
