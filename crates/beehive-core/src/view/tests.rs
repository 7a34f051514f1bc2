//! Compares the pair of copies with a model, which is a list of all states that have existed.

use super::copies::{Changes, Column, Copies, Mirror};
use super::pair::{Bounds, Copied, Log, Pair, Version};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

type State = BTreeMap<u8, u16>;

/// A copy whose `follow` checks that the log leads from the current version to this copy. The values in
/// [`super::derived::Derived`] stay valid only if it does.
#[derive(Clone, Default)]
struct Copy(State);

#[derive(Clone, Debug, Default)]
struct Sets(Vec<(u8, Option<u16>)>);

impl Log for Sets {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn append(&mut self, later: &mut Self) {
        self.0.append(&mut later.0)
    }
    fn clear(&mut self) {
        self.0.clear()
    }
}

impl Copied for Copy {
    type Log = Sets;
    fn duplicate(&self) -> Self {
        self.clone()
    }
    fn apply(&mut self, log: &Sets) {
        set(&mut self.0, log)
    }
    fn follow(&mut self, current: &Self, log: &Sets) {
        self.apply(log);
        let mut followed = current.0.clone();
        set(&mut followed, log);
        assert_eq!(followed, self.0, "the log does not lead from the current version to this copy")
    }
}

fn set(state: &mut State, log: &Sets) {
    for (key, value) in &log.0 {
        match value {
            Some(value) => drop(state.insert(*key, *value)),
            None => drop(state.remove(key)),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    HandOver(Vec<(u8, Option<u16>)>),
    Pin,
    Release(usize),
    Publish,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let change = (0u8..12, prop::option::weighted(0.7, any::<u16>()));
    prop_oneof![
        6 => prop::collection::vec(change, 1..5).prop_map(Step::HandOver),
        4 => Just(Step::Pin),
        3 => any::<usize>().prop_map(Step::Release),
        2 => Just(Step::Publish),
        1 => (1u64..40).prop_map(Step::Wait),
    ]
}

const BOUNDS: Bounds = Bounds { waiting: 6, held: 2, patience: 20 };

/// A pinned version and its content at the time of the pin.
type Pin = (Arc<Version<Copy>>, State);

fn run(steps: Vec<Step>, by_moment: bool) -> Result<(), TestCaseError> {
    let pair = Pair::new(Copy::default(), BOUNDS);
    let (mut states, mut handed_at, mut now) = (vec![State::new()], vec![0u64], 1u64);
    let (mut pins, mut seen, mut number): (Vec<Pin>, usize, u64) = (Vec::new(), 0, 0);

    for step in steps {
        match step {
            Step::HandOver(changes) => {
                let mut next = states.last().cloned().unwrap_or_default();
                set(&mut next, &Sets(changes.clone()));
                states.push(next);
                handed_at.push(now);
                let mut log = Sets(changes);
                pair.hand_over(&mut log, now, by_moment);
                prop_assert_eq!(log.len(), 0);
            }
            Step::Pin => {
                pair.try_publish(now);
                let since = pair.waiting_since();
                let version = pair.current();
                prop_assert!(version.number >= number);

                number = version.number;
                // The content must equal a past state, and not one from before a state that was already seen.
                let at = states.iter().rposition(|state| *state == version.content.0);
                let at = at.ok_or_else(|| TestCaseError::fail("the version equals no past state"))?;

                prop_assert!(at >= seen || states[seen..].contains(&version.content.0));
                seen = seen.max((seen..states.len()).find(|s| states[*s] == version.content.0).unwrap_or(at));
                // The age must not be understated: the version must contain everything handed over before
                // `since`, so its content must equal one of the states from `before` on.
                match since {
                    None => prop_assert_eq!(&version.content.0, &states[states.len() - 1]),
                    Some(since) => {
                        let before = handed_at.iter().rposition(|t| *t < since).unwrap_or(0);
                        prop_assert!(states[before..].contains(&version.content.0));
                    }
                }

                let content = version.content.0.clone();
                pins.push((version, content));
            }
            Step::Release(at) if !pins.is_empty() => drop(pins.swap_remove(at % pins.len())),
            Step::Release(_) => {}
            Step::Publish => pair.publish(now),
            Step::Wait(for_so_long) => now += for_so_long,
        }

        for (version, content) in &pins {
            prop_assert_eq!(&version.content.0, content, "a pinned version has changed");
        }

        prop_assert!(pair.copies() <= BOUNDS.held + 3, "{} copies", pair.copies());
    }

    pins.clear();
    // Copies released by readers can be updated and reused.
    pair.publish(now);
    prop_assert_eq!(&pair.current().content.0, &states[states.len() - 1]);
    prop_assert!(pair.waiting_since().is_none());
    prop_assert!(pair.copies() <= 2, "{} copies when nobody reads", pair.copies());
    Ok(())
}

proptest! {
    #[test]
    fn a_version_is_a_state_that_was_and_the_last_one_is_the_newest(steps in prop::collection::vec(step(), 0..120)) {
        run(steps, false)?
    }

    #[test]
    fn the_same_where_a_version_has_all_of_a_moment(steps in prop::collection::vec(step(), 0..120)) {
        run(steps, true)?
    }
}

#[test]
fn a_version_has_all_of_a_moment_or_nothing() {
    let pair = Pair::new(Copy::default(), BOUNDS);
    pair.hand_over(&mut Sets(vec![(1, Some(1))]), 10, true);
    pair.hand_over(&mut Sets(vec![(2, Some(2))]), 10, true);
    assert_eq!(pair.current().content.0.len(), 0);
    pair.hand_over(&mut Sets(vec![(3, Some(3))]), 11, true);
    assert_eq!(pair.current().content.0, State::from([(1, 1), (2, 2)]));
}

#[test]
fn changes_do_not_pile_up_where_nobody_looks_and_where_somebody_looks_for_long() {
    let pair = Pair::new(Copy::default(), BOUNDS);
    for round in 0..100 {
        pair.hand_over(&mut Sets(vec![(1, Some(round))]), 1, false);
        assert!(pair.waiting() <= BOUNDS.waiting);
    }

    assert!(pair.current().number > 10, "a hand-over that exceeds the limit publishes");
    // No time passes while these versions are held.
    let (_one, _two) = (pair.current(), {
        pair.hand_over(&mut Sets(vec![(1, Some(100))]), 1, false);
        pair.publish(1);
        pair.current()
    });

    for round in 0..100 {
        pair.hand_over(&mut Sets(vec![(2, Some(round))]), 1, false);
        assert!(pair.waiting() <= BOUNDS.waiting, "{} pending changes", pair.waiting());
    }
}

#[test]
fn every_version_has_a_number_of_its_own() {
    let pair = Pair::new(Copy::default(), BOUNDS);
    let mut last = pair.current().number;
    for round in 0..10 {
        pair.hand_over(&mut Sets(vec![(1, Some(round))]), 1, false);
        pair.publish(1);
        let number = pair.current().number;
        assert!(number > last);
        last = number;
        pair.publish(1);
        assert_eq!(pair.current().number, last, "nothing new, no new version");
    }
}

#[test]
fn readers_that_hold_on_get_copies_of_their_own_up_to_a_limit() {
    let pair = Pair::new(Copy::default(), BOUNDS);
    let mut pins = Vec::new();
    let mut now = 1;

    for round in 0..200u16 {
        now += BOUNDS.patience;
        pair.hand_over(&mut Sets(vec![(1, Some(round))]), now, false);
        pair.publish(now);
        pins.push(pair.current());
    }

    assert!(pair.copies() <= BOUNDS.held + 3, "{} copies", pair.copies());
    let held_back = pair.current().content.0[&1];
    assert!(held_back < 20, "nothing is published any more: {held_back}");
    assert!(pair.waiting_since().is_some_and(|since| now - since > 100 * BOUNDS.patience));

    // The changes written meanwhile are not lost: they are published once the readers are gone.
    pins.clear();
    pair.publish(now);
    assert_eq!(pair.current().content.0[&1], 199);
}

/// A value whose drop may panic, as an app's value may.
#[derive(Clone)]
struct Bad(Arc<Bomb>);
struct Bomb(bool);
impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0, "as asked")
    }
}
#[derive(Clone, Default)]
struct Bombs(BTreeMap<u8, Bad>);
impl Mirror for Bombs {
    type Change = (u8, Bad);
    fn apply(&mut self, (key, bad): &(u8, Bad)) {
        self.0.insert(*key, bad.clone());
    }
}

#[test]
fn a_panic_on_replacement_stops_nothing() {
    let copies = || Copies { columns: vec![Some(Column::of(Bombs::default()))] };
    let pair = Pair::new(copies(), BOUNDS);
    for round in 0..50 {
        let mut log = Changes::default();
        let changes = (0..5).map(|key| (key, Bad(Arc::new(Bomb(round < 48)))));
        log.of::<Bombs>(0).unwrap().extend(changes);
        pair.hand_over(&mut log, round, false);
        pair.publish(round);
    }

    assert!(pair.waiting_since().is_none());
    // The values of the last two rounds do not panic, so neither the current version nor the pending changes
    // contain one that does.
    let current = pair.current();
    let bombs: &Bombs = current.content.columns[0].as_ref().unwrap().cells().unwrap();

    assert_eq!(bombs.0.len(), 5);
    assert!(bombs.0.values().all(|bad| !bad.0.0));
}
