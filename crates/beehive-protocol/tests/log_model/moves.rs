//! Applies the steps of moves to both the state and the model.

use crate::model::{Arriving, Bee};
use crate::run::{Run, emit_of};
use crate::steps::{BEES, Step};
use crate::{APP, OF_ANOTHER_LOG, OUTSIDE};
use beehive_protocol::{
    BeeId, BeeImage, CellId, CellImage, ColonyId, DedupTable, Emits, EncodedCells, Epoch, FewSet, LaneId,
    Part, Record, Seq, StagePart, Time,
};
use std::collections::BTreeSet;

impl Run<'_> {
    pub(crate) fn step_of_move(&mut self, step: Step) {
        match step {
            Step::Freeze { bee, to } => self.freeze(self.id(bee), ColonyId(to)),
            Step::Drop { bee } => {
                let bee = self.id(bee);
                // Without effect if the bee is not frozen: the record is repeated.
                if let Some((_, lanes)) = self.model.bees.get(&bee).and_then(|of| of.frozen.clone()) {
                    self.model.bees.remove(&bee);
                    self.model.take(|id| lanes.contains(&id.lane))
                }
                self.apply(Record::Drop { app: APP, bee, view: self.view() })
            }
            Step::Thaw { bee, raises } => {
                let bee = self.id(bee);
                let Some(of) = self.model.bees.get_mut(&bee).filter(|of| of.frozen.is_some()) else { return };
                let epoch = if raises { of.epoch.next() } else { of.epoch };
                (of.frozen, of.epoch) = (None, epoch);
                self.apply(Record::Thaw { app: APP, bee, epoch, view: self.view() })
            }
            Step::Arrive { bee, size } => self.arrive(bee, size),
            Step::Continue { bee, parts } => (0..parts).for_each(|_| self.go_on(self.id(bee))),
            Step::Unstage { bee } => {
                let bee = self.id(bee);
                self.model.arriving.remove(&bee);
                self.apply(Record::Unstage { app: APP, bee, view: self.view() })
            }
            other => unreachable!("{other:?} is no step of a move"),
        }
    }

    fn freeze(&mut self, bee: BeeId, to: ColonyId) {
        let open = self.model.open_lanes();
        let Some(of) = self.model.bees.get_mut(&bee).filter(|of| of.frozen.is_none()) else { return };
        let own = LaneId::of_bee(APP, bee);
        let heirs: BTreeSet<LaneId> = of.merged.intersection(&open).copied().collect();
        let lanes: Vec<LaneId> = heirs.iter().copied().chain([own]).collect();
        of.frozen = Some((to, lanes.clone()));
        let mut of_state = self.state.lanes_of(APP, bee);
        of_state.rotate_left(1);
        assert_eq!(of_state, lanes, "the lanes of {bee}");
        self.apply(Record::Freeze { app: APP, bee, lanes, to, view: self.view() });
        assert_eq!(*self.state.bees[&(APP, bee)].heir_of, heirs)
    }

    /// Stages the first part of a copy, in place of an earlier copy.
    fn arrive(&mut self, place: u64, size: u8) {
        let id = self.id(place);
        // Each bee that comes from another log has a cell that only such a bee has.
        let (cell, second) = (CellId(place), CellId(place + 2 * BEES));
        let owns = |cell| self.model.owns(cell, id);
        if self.model.bees.contains_key(&id) || owns(cell) || owns(second) {
            return;
        }
        let mut bee = Bee { epoch: Epoch(1 + u32::from(size)), next: self.next_seq(id), ..Bee::default() };
        bee.cells = [cell, second].into();
        bee.now = Time::from_nanoseconds(u64::from(size) * 9);
        bee.raise(OF_ANOTHER_LOG[0], Seq(u64::from(size)));
        bee.seen.insert((OF_ANOTHER_LOG[0], Seq(u64::from(size) + 2), Part(1)));
        bee.seen.insert((OUTSIDE[0], Seq(place), Part::WHOLE));
        bee.merged = [LaneId::of_bee(APP, BeeId(id.0 + (1 << 20)))].into();
        let (key, second_key) = (cell.0 as u8, second.0 as u8);
        let rows =
            (0..size).flat_map(|row| [(0, key, None), (1, key, Some(row)), (1, second_key, Some(row))]);
        bee.changes = rows.map(|place| (place, Some(size))).collect();
        let of_merged = BeeId(id.0 + (1 << 20));
        let senders = [id, of_merged, id].into_iter().cycle().take(usize::from(size));
        let outbox: Vec<_> =
            senders.enumerate().map(|(at, sender)| (self.next_id(sender), at == 2)).collect();
        bee.next = self.next_seq(id);

        let of = Copy { bee: &bee, outbox: &outbox }.parts().len() as u32;
        self.model.arriving.insert(id, Arriving { bee, outbox, staged: 0, of });
        self.go_on(id)
    }

    /// Stages the next part of a copy, or adopts the complete copy.
    fn go_on(&mut self, id: BeeId) {
        let view = self.view();
        let Some(arriving) = self.model.arriving.get_mut(&id) else { return };
        let epoch = arriving.bee.epoch;
        if arriving.staged < arriving.of {
            let (at, of) = (arriving.staged, arriving.of);
            let part = Copy { bee: &arriving.bee, outbox: &arriving.outbox }.parts().swap_remove(at as usize);
            arriving.staged += 1;
            return self.apply(Record::Stage { app: APP, bee: id, epoch, part, at, of, view });
        }
        let Some(arrived) = self.model.arriving.remove(&id) else { return };
        arrived.outbox.into_iter().for_each(|(id, is_sweep)| self.model.emit(id, is_sweep, None));
        self.model.bees.insert(id, arrived.bee);
        self.model.newest = self.model.newest.max(Some(id));
        self.apply(Record::Adopt { app: APP, bee: id, epoch, view })
    }
}

/// A copy of a bee.
struct Copy<'a> {
    bee: &'a Bee,
    outbox: &'a [(beehive_protocol::MessageId, bool)],
}

impl Copy<'_> {
    /// Returns the parts. Each kind of part is among them, and the rows of a cell may be in several parts.
    fn parts(&self) -> Vec<StagePart> {
        let Copy { bee, outbox } = self;
        let mut seen = [DedupTable::default(), DedupTable::default()];
        bee.seen.iter().for_each(|(lane, seq, part)| {
            let at = usize::from(lane.is_outside());
            seen[at].insert(*lane, *seq, *part)
        });
        bee.floors.iter().for_each(|(lane, floor)| seen[0].raise(*lane, *floor));
        let [seen, more_seen] = seen;
        let mut cells = bee.cells.iter().copied();
        let image = BeeImage {
            cells: FewSet::from_iter(cells.next()),
            // what the source log says about the move does not count
            leaves_for: Some(ColonyId(9)),
            epoch: Epoch(0),
            state: EncodedCells::default(),
            seen,
            next_seq: bee.next,
            now: bee.now,
            heir_of: bee.merged.iter().copied().collect(),
        };
        let row = |((dict, key, row), value): &(crate::model::Place, Option<u8>)| {
            let row = row.map_or(Vec::new(), |row| vec![row]);
            let rows = vec![(row, vec![value.expect("a copy has no removed rows")])];
            StagePart::Rows(vec![CellImage { dict: *dict, key: vec![*key], rows }])
        };
        let emits = |part: &[(beehive_protocol::MessageId, bool)]| {
            StagePart::Outbox(Emits(part.iter().map(|(id, is_sweep)| emit_of(*id, *is_sweep)).collect()))
        };
        let parts =
            [StagePart::Bee(Box::new(image)), StagePart::Cells(cells.collect()), StagePart::Seen(more_seen)];
        parts.into_iter().chain(bee.changes.iter().map(row)).chain(outbox.chunks(2).map(emits)).collect()
    }
}
