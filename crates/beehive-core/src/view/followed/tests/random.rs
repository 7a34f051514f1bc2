//! Hives that are told the logs of random worlds: entry by entry or by snapshots, one log before the other, with restarts, and with
//! answers of a registry that is behind.

use super::super::change::{Change, Restored};
use super::super::claims::{Answers, Claims};
use super::get;
use super::world::{Bee, COLONIES, Choice, Log, World};
use crate::state::image::EncodedCells;
use crate::time::Time;
use beehive_protocol::{BeeId, ColonyId, Epoch};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// A hive that is told the logs.
struct Reader<'a> {
    world: &'a World,
    claims: Claims,
    positions: [usize; COLONIES],
    /// The index of the hive's replica of the registry.
    index: usize,
    shown: EncodedCells,
    /// For each cell, the place in its history of what was read last.
    seen: BTreeMap<u8, usize>,
}

/// The events of a hive. Of 256 steps, so many are snapshots, questions and restarts.
#[derive(Clone, Debug)]
struct Schedule {
    snapshots: u8,
    questions: u8,
    restarts: u8,
    /// For each step: what happens, the colony, how often, and how many entries there are between two looks.
    steps: Vec<Choice>,
}

fn colony(at: usize) -> ColonyId {
    ColonyId(at as u32 + 1)
}

impl<'a> Reader<'a> {
    fn new(world: &'a World) -> Reader<'a> {
        Reader {
            world,
            claims: Claims::default(),
            positions: [0; COLONIES],
            index: 0,
            shown: EncodedCells::default(),
            seen: BTreeMap::new(),
        }
    }

    fn learn(&mut self, at: usize, count: usize, by_snapshot: bool) -> Result<(), TestCaseError> {
        let (log, begin) = (&self.world.logs[at], self.positions[at]);
        let end = log.told.len().min(begin + count);
        self.positions[at] = end;
        if by_snapshot {
            self.restore(at)
        } else {
            let changes = log.told[begin..end].iter().filter_map(|told| told.change.clone());
            changes.for_each(|change| self.claims.apply(colony(at), change))
        }
        self.read()
    }

    fn restore(&mut self, at: usize) {
        let Some(last) = self.positions[at].checked_sub(1) else { return };
        let told = &self.world.logs[at].told[last];
        let copy = |(bee, copy): (&u64, &Bee)| Restored {
            bee: BeeId(*bee),
            epoch: Epoch(copy.epoch),
            is_frozen: copy.leaves_for.is_some(),
            rows: copy.rows.of_dictionaries(1),
        };
        let (bees, staged) = (told.bees.iter().map(copy).collect(), told.staged.iter().map(copy).collect());
        self.claims.apply(colony(at), Change::Restored { bees, staged, known: told.known })
    }

    fn restart(&mut self) -> Result<(), TestCaseError> {
        (self.claims, self.shown) = (Claims::default(), EncodedCells::default());
        self.seen.clear();
        (0..COLONIES).for_each(|at| self.restore(at));
        self.read()?;
        for (cell, history) in &self.world.history {
            let is_removed_later = history.iter().skip(1).any(Option::is_none);
            if !is_removed_later && self.is_in_a_log(*cell) {
                prop_assert!(get(&self.shown, *cell).is_some(), "cell {} is missing after a restart", cell)
            }
        }
        Ok(())
    }

    fn is_in_a_log(&self, cell: u8) -> bool {
        let told = |(log, position): (&'a Log, usize)| Some(&log.told[position.checked_sub(1)?]);
        let states = self.world.logs.iter().zip(self.positions).filter_map(told);
        let mut bees = states.flat_map(|told| told.bees.values().chain(told.staged.values()));
        bees.any(|bee| get(&bee.rows, cell).is_some())
    }

    fn ask(&mut self, index: usize, seconds: u64) -> Result<(), TestCaseError> {
        self.index = self.index.max(index);
        let registry = &self.world.past[self.index];
        let answer = |bee: BeeId| {
            let entry = registry.bees.get(&bee.0)?;
            Some((colony(entry.at), Epoch(entry.epoch)))
        };
        let places = self.claims.questions().into_iter().map(|bee| (bee, answer(bee))).collect();
        let now = Time::from_nanoseconds(seconds * 1_000_000_000);
        self.claims.decide(&Answers { index: registry.index, places }, now, Duration::from_secs(10));
        self.read()
    }

    fn read(&mut self) -> Result<(), TestCaseError> {
        self.claims.settle().iter().for_each(|op| self.shown.apply(op));
        for (cell, history) in &self.world.history {
            let (value, seen) = (get(&self.shown, *cell), self.seen.entry(*cell).or_default());
            let Some(next) = history[*seen..].iter().position(|past| *past == value) else {
                let last = history[*seen];
                let text = format!("cell {cell}: {value:?} after {last:?} of {history:?}");
                return Err(TestCaseError::fail(text));
            };
            *seen += next
        }
        Ok(())
    }

    fn step(&mut self, schedule: &Schedule, choice: Choice) -> Result<(), TestCaseError> {
        let (kind, one, often, entries) = choice;
        let (at, newest) = (usize::from(one) % COLONIES, self.world.past.len() - 1);
        if kind < schedule.questions {
            return self.ask(newest * usize::from(one) / 255, 0);
        }
        if kind < schedule.questions + schedule.restarts {
            return self.restart();
        }
        for number in 0..1 + often % 6 {
            let by_snapshot =
                often.wrapping_mul(31).wrapping_add(number.wrapping_mul(97)) < schedule.snapshots;
            self.learn(at, 1 + usize::from(entries % 3), by_snapshot)?
        }
        Ok(())
    }

    /// Learns everything. In the end, it shows what is newest, and asks no more.
    fn finish(mut self) -> Result<(), TestCaseError> {
        for at in 0..COLONIES {
            while self.positions[at] < self.world.logs[at].told.len() {
                self.learn(at, 1, false)?
            }
        }
        for seconds in [0, 100] {
            self.ask(self.world.past.len() - 1, seconds)?
        }
        for (cell, history) in &self.world.history {
            prop_assert_eq!(get(&self.shown, *cell), *history.last().unwrap(), "cell {}", cell)
        }
        prop_assert!(!self.claims.waits(), "something is left for ever");
        Ok(())
    }
}

fn choices(kinds: u8, count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Choice>> {
    prop::collection::vec((0..=kinds, any::<u8>(), any::<u8>(), any::<u8>()), count)
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let often = |values: &'static [u8]| prop::sample::select(values);
    let numbers = (often(&[0, 25, 80]), often(&[0, 0, 13, 50]), often(&[0, 0, 8]));
    (numbers, choices(255, 10..80)).prop_map(|((snapshots, questions, restarts), steps)| Schedule {
        snapshots,
        questions,
        restarts,
        steps,
    })
}

/// Number of schedules for each world.
const SCHEDULES: usize = 20;

/// Returns the number of worlds.
fn cases() -> u32 {
    if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 / SCHEDULES as u32 } else { 100 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cell_never_goes_back_and_never_vanishes(
        world in choices(23, 40..160),
        schedules in prop::collection::vec(schedule(), SCHEDULES),
    ) {
        let world = World::new(&world);
        for schedule in &schedules {
            let mut reader = Reader::new(&world);
            schedule.steps.iter().try_for_each(|choice| reader.step(schedule, *choice))?;
            reader.finish()?
        }
    }
}
