//! The state that a log folds to.

use crate::codec::DecodeError;
use crate::lane::{is_lasting, lane_of, part_of};
use crate::{
    BeeId, CellId, Emit, EncodedCells, Entry, Fact, Input, LoggedSettings, Record, Seen, Shapes, Time, Work,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One bee as a log describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeeImage {
    /// The cells it owns.
    pub cells: BTreeSet<CellId>,
    /// What is in them.
    pub state: EncodedCells,
    /// The messages from elsewhere that it has handled.
    pub seen: Seen,
    /// The number that its lane goes on with.
    pub next_seq: u64,
    /// The time its handlers saw last.
    pub now: Time,
    /// Lanes of bees that have merged into it, on which something was not handled when one last did.
    pub heir_of: BTreeSet<u64>,
}

/// A message that has been emitted and not been handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its place in the order in which everything of the colony was emitted.
    pub order: u64,
    /// The message.
    pub emit: Emit,
}

/// A sweep that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// The message that every cell has a turn at.
    pub waiting: Waiting,
    /// The first cell, in the order of [`sweep_order`], that it has not reached; none: it has reached all.
    pub next: Option<CellId>,
    /// The cells that it has reached and that have not had their turn.
    pub open: BTreeSet<CellId>,
}

/// What a log of a colony folds to: the bees, the messages that are still to be handled, the sweeps that go on, and what
/// has been handled without a bee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colony {
    /// Number of the last entry that took effect.
    pub last: u64,
    /// The bees, by app and number.
    pub bees: BTreeMap<(u16, BeeId), BeeImage>,
    /// Messages that have been emitted and not been handled.
    pub outbox: BTreeMap<Fact, Waiting>,
    /// Sweeps that have begun and are not over.
    pub sweeps: BTreeMap<Fact, Sweep>,
    /// Messages emitted so far.
    pub emitted: u64,
    /// Of the lanes that may be gone on with from outside: their floors, and what was consumed without a bee.
    pub seen: Seen,
    /// What apps were set to last, by number.
    pub settings: BTreeMap<u16, LoggedSettings>,
    /// What everything in it is encoded like.
    pub shapes: Shapes,
}

impl Colony {
    /// Applies an entry. Whether it took effect.
    pub fn apply(&mut self, entry: &Entry) -> bool {
        if entry.after != self.last {
            return false;
        }
        self.last = entry.number;
        match &entry.record {
            Record::Work(work) => self.work(work),
            Record::Admit { app, handler, input, emits } => {
                let mut others = Seen::default();
                for (seq, part) in input.messages() {
                    let fact = Fact { lane: input.lane, seq, part, app: *app };
                    if self.outbox.remove(&fact).is_none() && is_lasting(input.lane) {
                        others.insert(input.lane, seq, part_of(part, *app, *handler as usize))
                    }
                }
                self.seen.absorb(others);
                self.state_floor(input);
                self.emitted(emits)
            }
            Record::Expand { sweep, cells, gone, next } => {
                if let Some(open) = self.sweeps.get_mut(sweep) {
                    open.open.extend(cells.iter().copied());
                    gone.iter().for_each(|cell| {
                        open.open.remove(cell);
                    });
                    open.next = *next;
                }
                self.close(sweep)
            }
            Record::Fuse { app, from, into } => {
                if let Some(gone) = self.bees.remove(&(*app, *from)) {
                    let target_lanes =
                        self.bees.get_mut(&(*app, *into)).map(|bee| std::mem::take(&mut bee.heir_of));
                    let lanes = gone.heir_of.into_iter().chain(target_lanes.into_iter().flatten());
                    let lanes =
                        lanes.chain([lane_of(*app, *from)]).filter(|lane| self.is_waited_on(*lane)).collect();
                    let target = self.bees.entry((*app, *into)).or_default();
                    target.cells.extend(gone.cells);
                    target.state.absorb(gone.state);
                    target.seen.absorb(gone.seen);
                    target.now = target.now.max(gone.now);
                    target.heir_of = lanes
                }
            }
            Record::Release { app, bee, floors } => {
                self.bees.remove(&(*app, *bee));
                floors.iter().for_each(|(lane, floor)| self.seen.raise(*lane, *floor))
            }
            Record::Shapes(shapes) => self.shapes = shapes.clone(),
            Record::Retire { lanes } => {
                for seen in self.bees.values_mut().map(|bee| &mut bee.seen).chain([&mut self.seen]) {
                    lanes.iter().for_each(|lane| seen.forget(*lane))
                }
            }
            Record::Settings { settings } => {
                for (app, new) in settings {
                    let known = self.settings.entry(*app).or_default();
                    // two that began at once may come in either order
                    if new.version > known.version {
                        known.clone_from(new)
                    }
                }
            }
        }
        true
    }

    /// Whether something that was sent on a lane is still to be handled.
    fn is_waited_on(&self, lane: u64) -> bool {
        let (first, last) = (
            Fact { lane, seq: 0, part: 0, app: 0 },
            Fact { lane, seq: u64::MAX, part: u64::MAX, app: u16::MAX },
        );
        self.outbox.range(first..=last).next().is_some() || self.sweeps.range(first..=last).next().is_some()
    }

    fn work(&mut self, work: &Work) {
        let bee = self.bees.entry((work.app, work.bee)).or_default();
        bee.cells.extend(work.cells.iter().copied());
        work.ops.iter().for_each(|op| bee.state.apply(op));
        bee.next_seq = bee.next_seq.max(work.next_seq);
        bee.now = bee.now.max(work.now);
        for input in &work.inputs {
            for (seq, part) in input.messages() {
                let fact = Fact { lane: input.lane, seq, part, app: work.app };
                // what is in this log is consumed by the entry that takes it out
                if self.outbox.remove(&fact).is_none() {
                    bee.seen.insert(input.lane, seq, part);
                }
            }
            bee.seen.raise(input.lane, input.floor);
        }
        work.inputs.iter().for_each(|input| self.state_floor(input));
        for visited in &work.visits {
            if let Some(sweep) = self.sweeps.get_mut(&visited.sweep) {
                visited.cells.iter().for_each(|cell| {
                    sweep.open.remove(cell);
                })
            }
            self.close(&visited.sweep)
        }
        self.emitted(&work.emits)
    }

    /// The floor of a lane that may be gone on with is remembered also where no bee does.
    fn state_floor(&mut self, input: &Input) {
        if is_lasting(input.lane) {
            self.seen.raise(input.lane, input.floor)
        }
    }

    fn emitted(&mut self, emits: &[Emit]) {
        for emit in emits {
            self.emitted += 1;
            let waiting = Waiting { order: self.emitted, emit: emit.clone() };
            if emit.is_sweep {
                let sweep = Sweep { waiting, next: Some(CellId(0)), open: BTreeSet::new() };
                self.sweeps.insert(emit.fact, sweep);
            } else {
                self.outbox.insert(emit.fact, waiting);
            }
        }
    }

    /// Forgets a sweep that is over.
    fn close(&mut self, sweep: &Fact) {
        if self.sweeps.get(sweep).is_some_and(|sweep| sweep.next.is_none() && sweep.open.is_empty()) {
            self.sweeps.remove(sweep);
        }
    }

    /// The colony that the bytes of a log describe. Entries that took no effect are passed over.
    pub fn replay<'a>(log: impl IntoIterator<Item = &'a [u8]>) -> Result<Colony, DecodeError> {
        let mut colony = Colony::default();
        for bytes in log {
            colony.apply(&Entry::decode(bytes)?);
        }
        Ok(colony)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, HiveId};

    fn emit(bee: u64, seq: u64) -> Emit {
        let fact = Fact { lane: lane_of(0, BeeId(bee)), seq, part: 0, app: 1 };
        let (origin, sender) = (HiveId(0), Address::App(0));
        let (name, bytes) = ("a message".to_string(), Vec::new());
        Emit {
            fact,
            name,
            bytes,
            at: None,
            is_sweep: false,
            position: None,
            origin,
            sender,
            hops: 0,
            chain: 0,
            chance: 0,
        }
    }

    fn work(bee: u64, emits: Vec<Emit>, inputs: Vec<Input>, app: u16) -> Record {
        let (cells, visits, ops) = (vec![CellId(bee)], Vec::new(), Vec::new());
        Record::Work(Work {
            app,
            bee: BeeId(bee),
            cells,
            inputs,
            visits,
            ops,
            emits,
            next_seq: 9,
            now: Time::ZERO,
        })
    }

    /// A bee takes over the lanes of those that have merged into it, and of those that had merged into them, as long as
    /// something that was sent there is not handled.
    #[test]
    fn lanes_are_inherited_while_something_waits_there() {
        let mut colony = Colony::default();
        let mut apply = |record| {
            let (number, after) = (colony.last + 1, colony.last);
            assert!(colony.apply(&Entry { number, after, record }));
            colony.clone()
        };
        for bee in 1..=4 {
            apply(work(bee, if bee == 3 { Vec::new() } else { vec![emit(bee, 0)] }, Vec::new(), 0));
        }
        let fuse = |from, into| Record::Fuse { app: 0, from: BeeId(from), into: BeeId(into) };
        let heirs = |colony: &Colony, bee| colony.bees[&(0, BeeId(bee))].heir_of.clone();
        let lanes = |bees: &[u64]| bees.iter().map(|bee| lane_of(0, BeeId(*bee))).collect::<BTreeSet<_>>();
        assert_eq!(heirs(&apply(fuse(1, 2)), 2), lanes(&[1]));
        assert_eq!(heirs(&apply(fuse(3, 4)), 4), lanes(&[]), "nothing waits there");
        assert_eq!(heirs(&apply(fuse(2, 4)), 4), lanes(&[1, 2]));
        // what the first had sent is handled
        let input = Input { lane: lane_of(0, BeeId(1)), floor: 0, seq: 0, count: 1, part: 0 };
        apply(work(9, Vec::new(), vec![input], 1));
        apply(work(5, Vec::new(), Vec::new(), 0));
        assert_eq!(heirs(&apply(fuse(5, 4)), 4), lanes(&[2]));
    }

    /// Those that a hive begins with and those that somebody gives it at once may be written in either order.
    #[test]
    fn the_newest_settings_stay() {
        let of = |version, table: &str| (0, LoggedSettings { version, table: table.into() });
        let mut colony = Colony::default();
        for (number, settings) in [(1, of(2, "a = 2")), (2, of(1, "a = 1"))] {
            let record = Record::Settings { settings: vec![settings] };
            assert!(colony.apply(&Entry { number, after: number - 1, record }));
        }
        assert_eq!(colony.settings[&0], of(2, "a = 2").1);
    }
}
