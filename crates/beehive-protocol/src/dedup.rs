//! What a receiver remembers of the messages it has handled: for each lane a floor, and the few above it.
//!
//! The floor is stated by the sender: of what is below, nothing will be sent again. So memory holds what is between the
//! floor and the newest message, and not everything that ever came.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Messages of a set of lanes. A union of two is as true as both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    lanes: BTreeMap<u64, Line>,
}

/// One lane: everything below `floor`, and what is listed, none of it below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    floor: u64,
    /// Runs of numbers: first, and one past the last. They neither overlap nor touch.
    runs: BTreeMap<u64, u64>,
    /// Parts of messages: number, and which part.
    parts: BTreeSet<(u64, u64)>,
}

impl Line {
    fn contains(&self, seq: u64, part: u64) -> bool {
        if seq < self.floor {
            return true;
        }
        match part {
            0 => self.runs.range(..=seq).next_back().is_some_and(|(_, end)| seq < *end),
            part => self.parts.contains(&(seq, part)),
        }
    }

    /// Adds the numbers from `first` up to but not including `end`.
    fn insert_run(&mut self, first: u64, end: u64) {
        let (mut first, mut end) = (first.max(self.floor), end);
        if first >= end {
            return;
        }
        if let Some((before, before_end)) = self.runs.range(..=first).next_back()
            && *before_end >= first
        {
            (first, end) = (*before, end.max(*before_end));
        }
        // what it covers or touches becomes part of it
        while let Some((next, next_end)) = self.runs.range(first..=end).next() {
            let (next, next_end) = (*next, *next_end);
            end = end.max(next_end);
            self.runs.remove(&next);
        }
        self.runs.insert(first, end);
    }

    fn remove(&mut self, seq: u64, part: u64) {
        if part != 0 {
            self.parts.remove(&(seq, part));
            return;
        }
        let Some((first, end)) = self.runs.range(..=seq).next_back().map(|(first, end)| (*first, *end))
        else {
            return;
        };
        if seq < end {
            self.runs.remove(&first);
            if first < seq {
                self.runs.insert(first, seq);
            }
            if seq + 1 < end {
                self.runs.insert(seq + 1, end);
            }
        }
    }

    fn raise(&mut self, floor: u64) {
        if floor <= self.floor {
            return;
        }
        self.floor = floor;
        while let Some(run) = self.runs.first_entry() {
            if *run.key() >= floor {
                break;
            }
            let (_, end) = run.remove_entry();
            if end > floor {
                self.runs.insert(floor, end);
            }
        }
        self.parts = self.parts.split_off(&(floor, 0));
    }

    fn is_bare(&self) -> bool {
        self.runs.is_empty() && self.parts.is_empty()
    }
}

impl Seen {
    /// Whether part `part` of message `seq` has been handled; part zero is the message itself.
    pub fn contains(&self, lane: u64, seq: u64, part: u64) -> bool {
        self.lanes.get(&lane).is_some_and(|line| line.contains(seq, part))
    }

    /// Remembers it.
    pub fn insert(&mut self, lane: u64, seq: u64, part: u64) {
        let line = self.lanes.entry(lane).or_default();
        match part {
            0 => line.insert_run(seq, seq.saturating_add(1)),
            part if seq >= line.floor => {
                line.parts.insert((seq, part));
            }
            _ => {}
        }
    }

    /// Forgets it, unless it is below the floor: what is there has been handled for good.
    pub fn remove(&mut self, lane: u64, seq: u64, part: u64) {
        if let Some(line) = self.lanes.get_mut(&lane) {
            line.remove(seq, part);
            if line.floor == 0 && line.is_bare() {
                self.lanes.remove(&lane);
            }
        }
    }

    /// All below `floor` have been handled, by whoever had to, and will not be sent again. A floor never sinks.
    pub fn raise(&mut self, lane: u64, floor: u64) {
        if floor > 0 {
            self.lanes.entry(lane).or_default().raise(floor)
        }
    }

    /// The floor of a lane; zero if nothing is known.
    pub fn floor(&self, lane: u64) -> u64 {
        self.lanes.get(&lane).map_or(0, |line| line.floor)
    }

    /// Forgets a lane that is no more.
    pub fn forget(&mut self, lane: u64) {
        self.lanes.remove(&lane);
    }

    /// Keeps only the lanes of which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(u64) -> bool) {
        self.lanes.retain(|lane, _| keep(*lane))
    }

    /// Takes over what another has seen.
    pub fn absorb(&mut self, other: Seen) {
        for (lane, other) in other.lanes {
            let line = self.lanes.entry(lane).or_default();
            line.raise(other.floor);
            other.runs.into_iter().for_each(|(first, end)| line.insert_run(first, end));
            let floor = line.floor;
            line.parts.extend(other.parts.into_iter().filter(|(seq, _)| *seq >= floor));
        }
    }

    /// The lanes, with their floors.
    pub fn floors(&self) -> impl Iterator<Item = (u64, u64)> {
        self.lanes.iter().map(|(lane, line)| (*lane, line.floor))
    }

    /// The lanes of which something above the floor is remembered.
    pub fn lanes_above(&self) -> impl Iterator<Item = u64> {
        self.lanes.iter().filter(|(_, line)| !line.is_bare()).map(|(lane, _)| *lane)
    }

    /// Whether nothing of a lane is remembered from `floor` on.
    pub fn is_below(&self, lane: u64, floor: u64) -> bool {
        let Some(line) = self.lanes.get(&lane) else { return true };
        line.runs.last_key_value().is_none_or(|(_, end)| *end <= floor)
            && line.parts.last().is_none_or(|(seq, _)| *seq < floor)
    }

    /// Nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// What it takes to remember: lanes, runs of numbers above their floors, and parts.
    pub fn size(&self) -> usize {
        self.lanes.values().map(|line| 1 + line.runs.len() + line.parts.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64, u64),
        Remove(u64, u64, u64),
        Raise(u64, u64),
        Forget(u64),
        /// Of a second one, made of these.
        Absorb(Vec<(u64, u64, u64)>, u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let message = (0..3u64, 0..40u64, prop_oneof![4 => Just(0u64), 1 => 1..3u64]);
        prop_oneof![
            8 => message.clone().prop_map(|(l, s, p)| Step::Insert(l, s, p)),
            2 => message.clone().prop_map(|(l, s, p)| Step::Remove(l, s, p)),
            2 => (0..3u64, 0..45u64).prop_map(|(l, f)| Step::Raise(l, f)),
            1 => (0..3u64).prop_map(Step::Forget),
            1 => (prop::collection::vec(message, 0..20), 0..3u64, 0..30u64)
                .prop_map(|(messages, l, f)| Step::Absorb(messages, l, f)),
        ]
    }

    /// The same as a plain set with everything in it.
    #[derive(Default)]
    struct Model {
        above: HashSet<(u64, u64, u64)>,
        floors: BTreeMap<u64, u64>,
    }

    impl Model {
        fn floor(&self, lane: u64) -> u64 {
            self.floors.get(&lane).copied().unwrap_or(0)
        }
        fn contains(&self, lane: u64, seq: u64, part: u64) -> bool {
            seq < self.floor(lane) || self.above.contains(&(lane, seq, part))
        }
        fn raise(&mut self, lane: u64, floor: u64) {
            let before = self.floors.entry(lane).or_default();
            *before = floor.max(*before);
        }
    }

    fn check(seen: &Seen, model: &Model) -> Result<(), TestCaseError> {
        for lane in 0..3 {
            prop_assert_eq!(seen.floor(lane), model.floor(lane));
            for seq in 0..50 {
                for part in 0..3 {
                    let (is, should) = (seen.contains(lane, seq, part), model.contains(lane, seq, part));
                    prop_assert_eq!(is, should, "lane {} number {} part {}: {:?}", lane, seq, part, seen);
                }
            }
        }
        for line in seen.lanes.values() {
            let runs: Vec<(u64, u64)> = line.runs.iter().map(|(first, end)| (*first, *end)).collect();
            prop_assert!(runs.iter().all(|(first, end)| first < end && *first >= line.floor));
            prop_assert!(runs.windows(2).all(|pair| pair[0].1 < pair[1].0), "runs that touch: {:?}", runs);
            prop_assert!(line.parts.iter().all(|(seq, _)| *seq >= line.floor));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_is_a_set_with_a_floor(steps in prop::collection::vec(step(), 1..80)) {
            let (mut seen, mut model) = (Seen::default(), Model::default());
            for step in steps {
                match step {
                    Step::Insert(l, s, p) => {
                        seen.insert(l, s, p);
                        model.above.insert((l, s, p));
                    }
                    Step::Remove(l, s, p) => {
                        seen.remove(l, s, p);
                        model.above.remove(&(l, s, p));
                    }
                    Step::Raise(l, f) => {
                        seen.raise(l, f);
                        model.raise(l, f)
                    }
                    Step::Forget(lane) => {
                        seen.forget(lane);
                        model.floors.remove(&lane);
                        model.above.retain(|(l, ..)| *l != lane)
                    }
                    Step::Absorb(messages, lane, floor) => {
                        let mut other = Seen::default();
                        messages.iter().for_each(|(l, s, p)| other.insert(*l, *s, *p));
                        other.raise(lane, floor);
                        model.above.extend(messages);
                        model.raise(lane, floor);
                        seen.absorb(other)
                    }
                }
                // what is below the floor is never taken back
                let floors = model.floors.clone();
                model.above.retain(|(l, s, _)| *s >= floors.get(l).copied().unwrap_or(0));
                check(&seen, &model)?;
            }
        }
    }

    #[test]
    fn a_lane_in_order_takes_one_run() {
        let mut seen = Seen::default();
        for seq in 0..100_000 {
            seen.insert(7, seq, 0);
            assert!(seen.size() <= 2);
        }
        seen.raise(7, 100_000);
        assert_eq!(seen.size(), 1);
        assert!(
            seen.lanes_above().next().is_none()
                && seen.contains(7, 99_999, 0)
                && !seen.contains(7, 100_000, 0)
        );
    }
}
