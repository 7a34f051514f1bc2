//! Deduplication: a receiver's table of handled messages, by which it ignores resent ones.
//!
//! A sender announces a *floor*, the low-water mark of its lane: it never resends a message below the floor. The table
//! therefore lists only handled messages at or above the floor. Messages that arrive in order are stored as a single
//! run of numbers, regardless of how many there are.

use crate::few_map::FewMap;
use crate::stage_parts::divide;
use crate::{LaneId, Part, Seq};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The deduplication table of a receiver: the handled messages of each lane.
///
/// Kafka keeps similar state for each producer id. Entries remain valid when the table moves to another bee, so when
/// two bees merge, the union of their tables ([`DedupTable::absorb`]) is correct.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DedupTable {
    lanes: FewMap<LaneId, Line>,
}

/// The handled messages of one lane: all messages below `floor`, and the listed messages, which are at or above it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Encoded")]
struct Line {
    floor: Seq,
    /// Runs of numbers: the first number and the number after the last. Runs neither overlap nor touch.
    runs: FewMap<Seq, Seq>,
    /// Handled parts of messages.
    parts: BTreeSet<(Seq, Part)>,
}

/// An entry of a line, when a table is divided.
enum Entry {
    /// The lane itself.
    Lane,
    /// A run of numbers.
    Run(Seq, Seq),
    /// A part of a message.
    Part(Seq, Part),
}

/// Largest number of bytes that a lane, a run or a part takes in a record.
const ENTRY_BYTES: usize = 20;

/// A [`Line`] whose invariants have not been checked.
#[derive(Deserialize)]
struct Encoded {
    floor: Seq,
    runs: FewMap<Seq, Seq>,
    parts: BTreeSet<(Seq, Part)>,
}

impl TryFrom<Encoded> for Line {
    type Error = &'static str;

    fn try_from(Encoded { floor, runs, parts }: Encoded) -> Result<Line, &'static str> {
        let line = Line { floor, runs, parts };
        if !line.runs.iter().all(|(first, end)| line.is_apart(*first, *end)) {
            return Err("runs of handled messages are empty, overlap, touch, or are below the floor");
        }
        if line.parts.iter().any(|(seq, part)| *seq < floor || part.is_whole()) {
            return Err("a handled part is below the floor, or is a whole message");
        }
        Ok(line)
    }
}

impl Line {
    fn contains(&self, seq: Seq, part: Part) -> bool {
        if seq < self.floor {
            return true;
        }
        if !part.is_whole() {
            return self.parts.contains(&(seq, part));
        }
        self.runs.last_up_to(&seq).is_some_and(|(_, end)| seq < *end)
    }

    /// Adds the numbers from `first` up to but not including `end`.
    fn insert_run(&mut self, first: Seq, end: Seq) {
        let (mut first, mut end) = (first.max(self.floor), end);
        if first >= end {
            return;
        }

        if let Some((before, before_end)) = self.runs.last_up_to(&first)
            && *before_end >= first
        {
            (first, end) = (*before, end.max(*before_end));
        }
        // Absorb all runs that the new one covers or touches.
        while let Some((next, next_end)) = self.runs.first_from(&first) {
            if next > end {
                break;
            }
            end = end.max(next_end);
            self.runs.remove(&next);
        }

        self.runs.insert(first, end);
        debug_assert!(self.is_apart(first, end), "runs overlap or touch: {self:?}");
    }

    /// Checks whether the run from `first` to `end` neither overlaps nor touches its neighbors, and is not
    /// below the floor.
    fn is_apart(&self, first: Seq, end: Seq) -> bool {
        self.floor <= first
            && first < end
            && first
                .0
                .checked_sub(1)
                .and_then(|before| self.runs.last_up_to(&Seq(before)))
                .is_none_or(|(_, before_end)| *before_end < first)
            && self.runs.first_from(&first.next()).is_none_or(|(next, _)| end < next)
    }

    fn remove(&mut self, seq: Seq, part: Part) {
        if !part.is_whole() {
            self.parts.remove(&(seq, part));
            return;
        }
        let Some((first, end)) = self.runs.last_up_to(&seq).map(|(first, end)| (*first, *end)) else {
            return;
        };

        if seq < end {
            self.runs.remove(&first);
            if first < seq {
                self.runs.insert(first, seq);
            }
            if seq.next() < end {
                self.runs.insert(seq.next(), end);
            }
        }
    }

    fn raise(&mut self, floor: Seq) {
        if floor <= self.floor {
            return;
        }
        self.floor = floor;

        while let Some((first, end)) = self.runs.first().map(|(first, end)| (*first, *end)) {
            if first >= floor {
                break;
            }
            self.runs.remove(&first);
            if end > floor {
                self.runs.insert(floor, end);
            }
        }
        self.parts = self.parts.split_off(&(floor, Part::WHOLE));

        debug_assert!(self.runs.first().is_none_or(|(first, _)| *first >= self.floor));
        debug_assert!(self.parts.first().is_none_or(|(seq, _)| *seq >= self.floor));
    }

    /// Checks whether the line lists no messages.
    fn is_bare(&self) -> bool {
        self.runs.is_empty() && self.parts.is_empty()
    }
}

impl DedupTable {
    /// Checks whether part `part` of message `seq` has been handled.
    pub fn contains(&self, lane: LaneId, seq: Seq, part: Part) -> bool {
        self.lanes.get(&lane).is_some_and(|line| line.contains(seq, part))
    }

    /// Records that part `part` of message `seq` has been handled.
    pub fn insert(&mut self, lane: LaneId, seq: Seq, part: Part) {
        let line = self.lanes.get_or_default(lane);
        if part.is_whole() {
            line.insert_run(seq, seq.next())
        } else if seq >= line.floor {
            line.parts.insert((seq, part));
        }
    }

    /// Inserts the whole messages from `first` up to but not including `end`. Takes no longer for many than for one.
    pub fn insert_run(&mut self, lane: LaneId, first: Seq, end: Seq) {
        if first < end {
            self.lanes.get_or_default(lane).insert_run(first, end)
        }
    }

    /// Removes a message. Has no effect below the floor, where all messages count as handled.
    pub fn remove(&mut self, lane: LaneId, seq: Seq, part: Part) {
        if let Some(line) = self.lanes.get_mut(&lane) {
            line.remove(seq, part);
            if line.floor == Seq::ZERO && line.is_bare() {
                self.lanes.remove(&lane);
            }
        }
    }

    /// Raises the floor of a lane. All receivers must have handled the messages below it, and the sender must never
    /// resend them. A floor never falls, so a lower value has no effect.
    pub fn raise(&mut self, lane: LaneId, floor: Seq) {
        if floor > Seq::ZERO {
            let line = self.lanes.get_or_default(lane);
            let before = line.floor;
            line.raise(floor);
            debug_assert!(
                line.floor >= before,
                "the floor of {lane:?} fell from {before:?} to {:?}",
                line.floor
            );
        }
    }

    /// Checks whether the table contains the lane.
    pub fn contains_lane(&self, lane: LaneId) -> bool {
        self.lanes.get(&lane).is_some()
    }

    /// Returns the floor of a lane, or zero if the table does not contain the lane.
    pub fn floor(&self, lane: LaneId) -> Seq {
        self.lanes.get(&lane).map_or(Seq::ZERO, |line| line.floor)
    }

    /// Removes a lane on which no more messages are sent.
    pub fn forget(&mut self, lane: LaneId) {
        self.lanes.remove(&lane);
    }

    /// Keeps only the lanes for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(LaneId) -> bool) {
        self.lanes.retain(|lane, _| keep(*lane))
    }

    /// Adds all entries of another table.
    pub fn absorb(&mut self, other: DedupTable) {
        for (lane, other) in other.lanes {
            let line = self.lanes.get_or_default(lane);
            line.raise(other.floor);
            other.runs.into_iter().for_each(|(first, end)| line.insert_run(first, end));

            let floor = line.floor;
            line.parts.extend(other.parts.into_iter().filter(|(seq, _)| *seq >= floor));
        }
    }

    /// Returns the lanes with their floors.
    pub fn floors(&self) -> impl Iterator<Item = (LaneId, Seq)> {
        self.lanes.iter().map(|(lane, line)| (*lane, line.floor))
    }

    /// Returns the runs of handled whole messages that the table lists: the lane, the first number, and the number after the
    /// last.
    pub fn runs(&self) -> impl Iterator<Item = (LaneId, Seq, Seq)> {
        let lines = self.lanes.iter();
        lines.flat_map(|(lane, line)| line.runs.iter().map(|(first, end)| (*lane, *first, *end)))
    }

    /// Returns the handled parts of messages that the table lists.
    pub fn listed_parts(&self) -> impl Iterator<Item = (LaneId, Seq, Part)> {
        let lines = self.lanes.iter();
        lines.flat_map(|(lane, line)| line.parts.iter().map(|(seq, part)| (*lane, *seq, *part)))
    }

    /// Returns the lanes that have a handled message at or above their floor.
    pub fn lanes_above(&self) -> impl Iterator<Item = LaneId> {
        self.lanes.iter().filter(|(_, line)| !line.is_bare()).map(|(lane, _)| *lane)
    }

    /// Checks whether all messages listed for a lane are below `floor`.
    pub fn is_below(&self, lane: LaneId, floor: Seq) -> bool {
        let Some(line) = self.lanes.get(&lane) else { return true };
        line.runs.last().is_none_or(|(_, end)| *end <= floor)
            && line.parts.last().is_none_or(|(seq, _)| *seq < floor)
    }

    /// Checks whether the table contains no lane.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Returns an upper bound of the bytes that the table takes in a record.
    pub(crate) fn bytes_max(&self) -> usize {
        self.size().saturating_mul(ENTRY_BYTES)
    }

    /// Divides the table into tables of at most about `bytes_max` bytes, which [together](DedupTable::absorb) make up
    /// this one.
    pub(crate) fn parts(&self, bytes_max: usize) -> impl Iterator<Item = DedupTable> {
        let entries = self.lanes.iter().flat_map(|(lane, line)| {
            let runs = line.runs.iter().map(|(first, end)| Entry::Run(*first, *end));
            let parts = line.parts.iter().map(|(seq, part)| Entry::Part(*seq, *part));
            let entries = std::iter::once(Entry::Lane).chain(runs).chain(parts);
            entries.map(|entry| (*lane, line.floor, entry))
        });
        divide(entries, |_| ENTRY_BYTES, bytes_max).map(|entries| {
            let mut table = DedupTable::default();
            for (lane, floor, entry) in entries {
                let line = table.lanes.get_or_default(lane);
                line.floor = floor;
                match entry {
                    Entry::Lane => {}
                    Entry::Run(first, end) => line.insert_run(first, end),
                    Entry::Part(seq, part) => {
                        line.parts.insert((seq, part));
                    }
                }
            }
            table
        })
    }

    /// Returns the size of the table: the total number of lanes, runs and parts.
    pub fn size(&self) -> usize {
        self.lanes.iter().map(|(_, line)| 1 + line.runs.len() + line.parts.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashSet};

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64, u64),
        Remove(u64, u64, u64),
        Raise(u64, u64),
        Forget(u64),
        /// Absorbs a second table with these messages and this floor.
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

    /// The model of a table: the set of all handled messages.
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

    fn check(seen: &DedupTable, model: &Model) -> Result<(), TestCaseError> {
        for lane in 0..3 {
            prop_assert_eq!(seen.floor(LaneId(lane)).0, model.floor(lane));
            for seq in 0..50 {
                for part in 0..3 {
                    let is = seen.contains(LaneId(lane), Seq(seq), Part(part));
                    let should = model.contains(lane, seq, part);
                    prop_assert_eq!(is, should, "lane {} number {} part {}: {:?}", lane, seq, part, seen);
                }
            }
        }
        for (_, line) in seen.lanes.iter() {
            let runs: Vec<(Seq, Seq)> = line.runs.iter().map(|(first, end)| (*first, *end)).collect();
            prop_assert!(runs.iter().all(|(first, end)| first < end && *first >= line.floor));
            prop_assert!(runs.windows(2).all(|pair| pair[0].1 < pair[1].0), "runs that touch: {:?}", runs);
            prop_assert!(line.parts.iter().all(|(seq, _)| *seq >= line.floor));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_is_a_set_with_a_floor(steps in prop::collection::vec(step(), 1..40)) {
            let (mut seen, mut model) = (DedupTable::default(), Model::default());
            for step in steps {
                match step {
                    Step::Insert(l, s, p) => {
                        seen.insert(LaneId(l), Seq(s), Part(p));
                        model.above.insert((l, s, p));
                    }
                    Step::Remove(l, s, p) => {
                        seen.remove(LaneId(l), Seq(s), Part(p));
                        model.above.remove(&(l, s, p));
                    }
                    Step::Raise(l, f) => {
                        seen.raise(LaneId(l), Seq(f));
                        model.raise(l, f)
                    }
                    Step::Forget(lane) => {
                        seen.forget(LaneId(lane));
                        model.floors.remove(&lane);
                        model.above.retain(|(l, ..)| *l != lane)
                    }
                    Step::Absorb(messages, lane, floor) => {
                        let mut other = DedupTable::default();
                        messages.iter().for_each(|(l, s, p)| other.insert(LaneId(*l), Seq(*s), Part(*p)));
                        other.raise(LaneId(lane), Seq(floor));
                        model.above.extend(messages);
                        model.raise(lane, floor);
                        seen.absorb(other)
                    }
                }
                // A message below the floor stays handled.
                let floors = model.floors.clone();
                model.above.retain(|(l, s, _)| *s >= floors.get(l).copied().unwrap_or(0));
                check(&seen, &model)?;
            }
        }
    }

    /// A damaged table could lack handled messages, or list unhandled ones.
    #[test]
    fn a_table_that_breaks_an_invariant_is_not_decoded() {
        type Lane = (Seq, BTreeMap<Seq, Seq>, BTreeSet<(Seq, Part)>);
        let decoded = |runs: &[(u64, u64)], parts: &[(u64, u64)]| {
            let runs = runs.iter().map(|(first, end)| (Seq(*first), Seq(*end))).collect();
            let parts = parts.iter().map(|(seq, part)| (Seq(*seq), Part(*part))).collect();
            let lanes: BTreeMap<LaneId, Lane> = BTreeMap::from([(LaneId(1), (Seq(5), runs, parts))]);
            crate::codec::decode::<DedupTable>("a table", &crate::codec::encode(&lanes))
        };

        assert!(decoded(&[(5, 7), (8, 9)], &[(6, 1)]).is_ok());
        for runs in [&[(4, 7)][..], &[(7, 7)], &[(9, 7)], &[(5, 8), (7, 9)], &[(5, 7), (7, 9)]] {
            assert!(decoded(runs, &[]).is_err(), "{runs:?}");
        }
        assert!(decoded(&[], &[(4, 1)]).is_err() && decoded(&[], &[(6, 0)]).is_err());
    }

    #[test]
    fn a_lane_in_order_takes_one_run() {
        let (mut seen, lane) = (DedupTable::default(), LaneId(7));
        for seq in 0..100_000 {
            seen.insert(lane, Seq(seq), Part::WHOLE);
            assert!(seen.size() <= 2);
        }

        seen.raise(lane, Seq(100_000));
        assert_eq!((seen.size(), seen.lanes_above().next()), (1, None));
        assert!(
            seen.contains(lane, Seq(99_999), Part::WHOLE) && !seen.contains(lane, Seq(100_000), Part::WHOLE)
        );
    }
}
