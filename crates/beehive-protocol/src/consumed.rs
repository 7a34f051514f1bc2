//! Shortens the list of messages that a bee has handled without effect. A log that commits nothing for a long time does not
//! record the list, which goes on growing.

use crate::{Consumed, Input};
use std::collections::{BTreeMap, BTreeSet};

impl Consumed {
    /// Drops the messages that the lane's floor has passed, as the later messages state it: who applies a record raises the
    /// lane's floor, and forgets all messages below it. Then lists messages with consecutive numbers as one run.
    ///
    /// Messages without a floor are kept, because a record removes each of them from an outbox.
    pub fn compact(&mut self) {
        let mut floors = BTreeMap::new();
        for input in &self.inputs {
            if let Some(floor) = input.floor {
                let highest = floors.entry(input.lane).or_insert(floor);
                *highest = floor.max(*highest)
            }
        }

        let before = std::mem::take(&mut self.inputs);
        let mut stated = BTreeSet::new();
        // the last message of a lane states the floor, even if the floor has passed it
        for mut input in before.into_iter().rev() {
            let floor = input.floor.and_then(|_| floors.get(&input.lane).copied());
            if floor.is_some_and(|floor| input.seq.plus(input.count.into()) <= floor)
                && !stated.insert(input.lane)
            {
                continue;
            }
            if floor.is_some() {
                stated.insert(input.lane);
                input.floor = floor
            }
            match self.inputs.last_mut() {
                Some(later) if later.follows(&input) => {
                    (later.seq, later.count) = (input.seq, later.count + input.count)
                }
                _ => self.inputs.push(input),
            }
        }
        self.inputs.reverse();
        self.inputs.shrink_to_fit()
    }
}

impl Input {
    /// Checks whether these messages and those of `earlier` are one run.
    fn follows(&self, earlier: &Input) -> bool {
        let are_alike = (self.lane, self.floor) == (earlier.lane, earlier.floor);
        let are_whole = self.part.is_whole() && earlier.part.is_whole();
        let is_next = earlier.seq.plus(earlier.count.into()) == self.seq;
        are_alike && are_whole && is_next && earlier.count.checked_add(self.count).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AppId, BeeId, DedupTable, InputRuns, LaneId, Part, Seq};
    use proptest::prelude::*;

    fn input() -> impl Strategy<Value = Input> {
        let (seqs, parts) = (0..60u64, prop_oneof![3 => Just(0u64), 1 => 1..3u64]);
        (0..3u64, 0..50u64, seqs, 1..4u32, parts).prop_map(|(lane, floor, seq, count, part)| Input {
            lane: LaneId::lasting(lane),
            // the messages of the last lane come from an outbox
            floor: (lane < 2).then_some(Seq(floor)),
            seq: Seq(seq),
            count: if part == 0 { count } else { 1 },
            part: if part == 0 { Part::WHOLE } else { Part(part) },
        })
    }

    fn consumed(inputs: impl IntoIterator<Item = Input>) -> Consumed {
        let inputs: InputRuns = inputs.into_iter().collect();
        Consumed { app: AppId(0), bee: BeeId(1), inputs, visits: Vec::new() }
    }

    /// Returns what a receiver remembers after a record with these inputs, and the messages that the record removes from an
    /// outbox.
    fn applied(inputs: &[Input]) -> (DedupTable, BTreeSet<(Seq, Part)>) {
        let (mut seen, mut removed) = (DedupTable::default(), BTreeSet::new());
        for input in inputs {
            match input.floor {
                Some(floor) => {
                    input.messages().for_each(|(seq, part)| seen.insert(input.lane, seq, part));
                    seen.raise(input.lane, floor)
                }
                None => removed.extend(input.messages()),
            }
        }
        (seen, removed)
    }

    proptest! {
        #[test]
        fn a_shorter_list_has_the_same_effect(inputs in prop::collection::vec(input(), 0..40)) {
            let mut shorter = consumed(inputs.clone());
            shorter.compact();
            prop_assert!(shorter.inputs.len() <= inputs.len());
            prop_assert_eq!(applied(&shorter.inputs), applied(&inputs));
        }
    }

    #[test]
    fn messages_in_order_become_one_run_and_those_below_the_floor_vanish() {
        let of = |floor, seq| Input {
            lane: LaneId::lasting(1),
            floor: Some(Seq(floor)),
            seq: Seq(seq),
            count: 1,
            part: Part::WHOLE,
        };
        let mut in_order = consumed((0..100).map(|seq| of(0, seq)));
        in_order.compact();
        assert_eq!(in_order.inputs[..], [Input { count: 100, ..of(0, 0) }]);

        let mut every_second = consumed((0..100).map(|at| of(2 * at, 2 * at)));
        every_second.compact();
        assert_eq!(every_second.inputs[..], [of(198, 198)]);
    }
}
