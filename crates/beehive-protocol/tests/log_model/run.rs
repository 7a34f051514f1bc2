//! Applies each step to both the state and the model: what bees and the hive do. `moves.rs` has the steps of moves.

use crate::kinds::Effects;
use crate::model::{Bee, Model};
use crate::steps::{BEES, Step};
use crate::{APP, OF_ANOTHER_LOG, OUTSIDE, RECEIVER, partial};
use beehive_protocol::{
    Acked, Address, AppId, BeeId, CellId, Consumed, CrashMarker, Emit, Emits, Entry, EntryNumber, HandlerId,
    HiveId, Input, LaneId, LogPlace, LogState, LoggedSettings, MessageId, MessageTypeId, Op, Part, Payload,
    Record, Redo, Seq, Shapes, Suspect, Time, Untold, Visited, Work,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) struct Run<'a> {
    pub(crate) state: LogState,
    pub(crate) model: Model,
    /// The encoded entries, also those without effect.
    pub(crate) log: Vec<Vec<u8>>,
    numbers: BTreeMap<BeeId, u64>,
    /// For each place of a bee, the number of bees that have ended there. An id is never used again.
    ended: [u64; BEES as usize],
    effects: &'a RefCell<Effects>,
    /// The bees of [`APP`] that may differ from the model until they are compared with it.
    changed: BTreeSet<BeeId>,
}

pub(crate) fn emit_of(id: MessageId, is_sweep: bool) -> Emit {
    Emit {
        id,
        message_type: MessageTypeId(1),
        payload: Payload::from(&[][..]),
        at: None,
        is_sweep,
        position: None,
        origin: HiveId(0),
        sender: Address::App(APP),
        hops: 0,
        chain: 0,
        chance: 0,
    }
}

fn cells_of(cells: &[u64]) -> Vec<CellId> {
    cells.iter().copied().map(CellId).collect()
}

impl<'a> Run<'a> {
    pub(crate) fn new(effects: &'a RefCell<Effects>) -> Run<'a> {
        let (state, model, log, numbers, ended, changed) = Default::default();
        Run { state, model, log, numbers, ended, effects, changed }
    }

    /// Applies an entry that must take effect.
    pub(crate) fn apply(&mut self, record: Record) {
        let number = EntryNumber(self.state.last.0 + 2);
        self.apply_entry(Entry { number, after: self.state.last, record })
    }

    fn apply_entry(&mut self, entry: Entry) {
        let mut before = self.state.clone();
        partial::apply(&mut self.state, &entry);
        assert!(!self.state.apply(&entry), "a second time it is ignored");
        self.log.push(entry.encode());

        let named = entry.record.bees();
        match entry.record {
            Record::Retire { .. } => self.changed.extend(self.model.bees.keys()),
            _ => self.changed.extend(named.iter().filter(|(app, _)| *app == APP).map(|(_, bee)| bee)),
        }
        self.model.known = entry.record.view().max(self.model.known);
        let begins_term = before.last.term() < self.state.last.term();
        (before.last, before.known) = (self.state.last, self.state.known);
        let has_effect = begins_term || before != self.state;
        self.effects.borrow_mut().count(&entry.record, has_effect)
    }

    /// Applies an entry that must have no effect.
    fn apply_dead(&mut self, entry: Entry) {
        let before = self.state.clone();
        assert!(!self.state.apply(&entry));
        assert_eq!(self.state, before);
        self.log.push(entry.encode())
    }

    /// Compares the state with the model. Of the bees, only those are compared that the last records have named: `partial`
    /// compares the others with what they were before.
    pub(crate) fn check(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        self.model.check(&self.state, |bee| changed.contains(&bee))
    }

    /// Returns the id of the bee at a place.
    pub(crate) fn id(&self, place: u64) -> BeeId {
        BeeId(place + BEES * self.ended[place as usize])
    }

    /// Notes that a bee has ended.
    fn ended(&mut self, bee: BeeId) {
        self.ended[(bee.0 % BEES) as usize] += 1
    }

    /// Returns the index of the registry on which the next record is based: the next one, or none.
    pub(crate) fn view(&self) -> u64 {
        if self.log.len().is_multiple_of(2) { self.model.known + 1 } else { 0 }
    }

    pub(crate) fn next_id(&mut self, bee: BeeId) -> MessageId {
        let next = self.numbers.entry(bee).or_default();
        *next += 1;
        MessageId { lane: LaneId::of_bee(APP, bee), seq: Seq(*next), part: Part::WHOLE, app: RECEIVER }
    }

    /// Returns the next free number of the lane of a bee.
    pub(crate) fn next_seq(&self, bee: BeeId) -> Seq {
        Seq(self.numbers.get(&bee).copied().unwrap_or(0) + 1)
    }

    /// Returns a bee of the model that is about to run, and the record of its run. Adds the cell that each record of this bee
    /// names. Returns `None` if the cell belongs to another bee, or if the bee is moving.
    fn runs(&mut self, place: u64) -> Option<(&mut Bee, Work)> {
        let (id, cell) = (self.id(place), CellId(place));
        let moves = self.model.arriving.contains_key(&id)
            || self.model.bees.get(&id).is_some_and(|bee| bee.frozen.is_some());
        if moves || self.model.owns(cell, id) {
            return None;
        }
        // the clock of the hive may go back
        let now = Time::from_nanoseconds(self.log.len() as u64 / 4 * 4 + 3 - self.log.len() as u64 % 4);
        let next_seq = self.next_seq(id);
        self.model.newest = self.model.newest.max(Some(id));
        self.model.now = self.model.now.max(now);
        let bee = self.model.bees.entry(id).or_default();
        bee.cells.insert(cell);
        bee.next = bee.next.max(next_seq);
        bee.now = bee.now.max(now);
        let work = Work {
            app: APP,
            bee: id,
            cells: vec![cell],
            inputs: Default::default(),
            visits: Vec::new(),
            redo: Redo::default(),
            emits: Emits::default(),
            next_seq,
            now,
        };
        Some((bee, work))
    }

    /// Numbers messages that a bee emits in its next run.
    fn emits(&mut self, place: u64, count: usize) -> Vec<MessageId> {
        let id = self.id(place);
        (0..count).map(|_| self.next_id(id)).collect()
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Work { bee, emits, consumes } => self.work(bee, emits, consumes),
            Step::FromOutside { bee, lane, seq, count, floor } => {
                let input = Input {
                    lane: OUTSIDE[lane],
                    floor: Some(Seq(floor)),
                    seq: Seq(seq),
                    count,
                    part: Part::WHOLE,
                };
                self.consume(bee, input)
            }
            Step::FromAnotherLog { bee, lane, seq, part, floor } => {
                let (lane, floor) = (OF_ANOTHER_LOG[lane], Some(Seq(floor)));
                self.consume(bee, Input { lane, floor, seq: Seq(seq), count: 1, part: Part(part) })
            }
            Step::Consumed { bee, lane, seq, count, floor } => {
                let (bee, lane, floor) = (self.id(bee), OUTSIDE[lane], Seq(floor));
                let input = Input { lane, floor: Some(floor), seq: Seq(seq), count, part: Part::WHOLE };
                // The log cannot record handled messages for a bee that it does not contain.
                // Such a record may follow the one that freezes the bee.
                if let Some(of) = self.model.bees.get_mut(&bee) {
                    self.effects.borrow_mut().consumed_by_frozen += u64::from(of.frozen.is_some());
                    of.seen.extend(input.messages().map(|(seq, part)| (lane, seq, part)));
                    of.raise(lane, floor)
                }
                if lane.is_lasting() {
                    self.model.raise(lane, floor)
                }
                let one =
                    Consumed { app: APP, bee, inputs: [input].into_iter().collect(), visits: Vec::new() };
                self.apply(Record::Consumed(vec![one]))
            }
            Step::Acked { count } => self.acked(count),
            Step::Admit { lane, seq, handler, is_sweep } => {
                let (lane, handler, seq) = (OUTSIDE[lane], HandlerId(handler), Seq(seq));
                let next = self.model.next_of_app.unwrap_or_default();
                let id = MessageId { lane: LaneId::of_app(APP), seq: next, part: Part(seq.0), app: RECEIVER };
                self.model.next_of_app = Some(next.next());
                if lane.is_lasting() {
                    self.model.without_bee.insert((lane, seq, handler));
                }
                self.model.emit(id, is_sweep, Some(MessageId { lane, seq, part: Part::WHOLE, app: APP }));
                let input = Input { lane, floor: Some(Seq(0)), seq, count: 1, part: Part::WHOLE };
                self.apply(Record::Admit {
                    app: APP,
                    handler,
                    input,
                    emits: Emits(vec![emit_of(id, is_sweep)]),
                })
            }
            Step::Fuse { from, into } => self.fuse(from, into),
            Step::Release { bee } => {
                let bee = self.id(bee);
                match self.model.bees.get(&bee) {
                    Some(of) if of.frozen.is_some() => return,
                    Some(_) => self.ended(bee),
                    None => {}
                }
                self.model.bees.remove(&bee);
                let floors = vec![(OUTSIDE[1], Seq(7))];
                self.model.raise(OUTSIDE[1], Seq(7));
                let view = self.view();
                self.note(Untold::Released { bee }, view);
                self.apply(Record::Release { app: APP, bee, floors, view })
            }
            Step::Retire { lane } => {
                let lane = OUTSIDE.into_iter().chain(OF_ANOTHER_LOG).nth(lane).unwrap();
                for bee in self.model.bees.values_mut() {
                    bee.seen.retain(|(other, ..)| *other != lane);
                    bee.floors.remove(&lane);
                }
                self.model.floors.remove(&lane);
                self.model.without_bee.retain(|(other, ..)| *other != lane);
                self.apply(Record::Retire { lanes: vec![lane], view: self.view() })
            }
            Step::BeginSweep { bee } => {
                let ids = self.emits(bee, 1);
                let Some((_, mut work)) = self.runs(bee) else { return };
                work.emits = Emits(vec![emit_of(ids[0], true)]);
                self.model.emit(ids[0], true, None);
                self.apply(Record::Turn(vec![Arc::new(work)]))
            }
            Step::Expand { cells, gone, ends } => {
                let Some(sweep) = self.model.open_sweeps().first().copied() else { return };
                let (cells, gone) = (cells_of(&cells), cells_of(&gone));
                let of = self.model.sweeps.iter_mut().find(|of| of.id == sweep).unwrap();
                of.open.extend(cells.iter().copied());
                of.open.retain(|cell| !gone.contains(cell));
                of.has_reached_all = ends;
                self.apply(Record::Expand { sweep, cells, gone, next: (!ends).then_some(CellId(9)) })
            }
            Step::Visit { bee, cells, how } => {
                let Some(sweep) = self.model.open_sweeps().first().copied() else { return };
                let cells = cells_of(&cells);
                let visits = vec![Visited { sweep, cells: cells.clone() }];
                let record = match how {
                    0 => Record::Visited(visits),
                    1 => {
                        let (bee, inputs) = (self.id(bee), Vec::new());
                        Record::Consumed(vec![Consumed { app: APP, bee, inputs: inputs.into(), visits }])
                    }
                    _ => {
                        let Some((_, work)) = self.runs(bee) else { return };
                        Record::Turn(vec![Arc::new(Work { visits, ..work })])
                    }
                };
                let of = self.model.sweeps.iter_mut().find(|of| of.id == sweep).unwrap();
                of.open.retain(|cell| !cells.contains(cell));
                self.apply(record)
            }
            Step::Stale { bee } => {
                let (number, after) = (EntryNumber(u64::MAX), EntryNumber(self.state.last.0 + 1));
                let record = Record::Release { app: APP, bee: self.id(bee), floors: vec![], view: 0 };
                self.apply_dead(Entry { number, after, record })
            }
            Step::Create { bee } => {
                let id = self.id(bee);
                if self.model.arriving.contains_key(&id) {
                    return;
                }
                self.model.bees.entry(id).or_default();
                self.model.newest = self.model.newest.max(Some(id));
                self.apply(Record::Create { app: APP, bee: id, view: self.view() })
            }
            Step::Split { bee, new, cell } => self.split(bee, new, cell),
            Step::Told { what } => {
                let Some(told) = self.model.untold.get(what).cloned() else { return };
                self.model.untold.retain(|untold| *untold != told);
                self.apply(Record::Told { what: told, view: self.view() })
            }
            Step::Settings { app, version } => {
                let (app, table) = (AppId(app), format!("at = {}", self.log.len()));
                self.model.settings.entry(app).or_default().push((version, table.clone()));
                self.apply(Record::Settings { settings: vec![(app, LoggedSettings { version, table })] })
            }
            Step::Shapes { name } => {
                let names = [(MessageTypeId(1), format!("name{name}"))].into();
                let shapes = Shapes { names, ..Shapes::default() };
                self.model.shapes = shapes.clone();
                self.apply(Record::Shapes(shapes))
            }
            Step::Mark { names } => {
                let of = |seq| MessageId { lane: OUTSIDE[1], seq: Seq(seq), part: Part::WHOLE, app: APP };
                let suspect = |seq| Suspect { id: of(seq), cell: None };
                let marker =
                    names.map(|seq| CrashMarker { running: vec![suspect(seq)], ..CrashMarker::default() });
                self.model.marker = marker.clone();
                self.apply(Record::Mark { marker })
            }
            Step::Term { is_on_last } => {
                let last = self.state.last;
                let number = EntryNumber::first_of(last.term() + 1);
                let after = if is_on_last { last } else { last.next() };
                self.apply_entry(Entry { number, after, record: Record::Blank });
                let late = Record::Time(Time::from_nanoseconds(1_000_000));
                self.apply_dead(Entry { number: last.next(), after: last, record: late })
            }
            Step::Time { now } => {
                let now = Time::from_nanoseconds(now);
                self.model.now = self.model.now.max(now);
                self.apply(Record::Time(now))
            }
            Step::Place { number, of } => {
                self.model.place = Some(LogPlace { number, of });
                self.apply(Record::Place(LogPlace { number, of }))
            }
            Step::Freeze { .. }
            | Step::Drop { .. }
            | Step::Thaw { .. }
            | Step::Arrive { .. }
            | Step::Continue { .. }
            | Step::Unstage { .. } => self.step_of_move(step),
        }
    }

    fn work(&mut self, place: u64, emits: usize, consumes: usize) {
        let ids = self.emits(place, emits);
        let length = self.log.len();
        let Some((bee, mut work)) = self.runs(place) else { return };
        let value = (!length.is_multiple_of(3)).then_some(length as u8);
        let row = (length % 4 > 1).then_some(length as u8 % 3);
        let (dict, key) = (u32::from(row.is_some()), place as u8);
        bee.changes.push(((dict, key, row), value));
        let (row, value) = (row.map(|row| [row]), value.map(|value| [value]));
        work.redo.push(Op {
            dict,
            key: &[key],
            row: row.as_ref().map(<[u8; 1]>::as_slice),
            value: value.as_ref().map(<[u8; 1]>::as_slice),
        });
        work.emits = ids.iter().map(|id| emit_of(*id, false)).collect();
        ids.into_iter().for_each(|id| self.model.emit(id, false, None));
        // Two bees that ran between two entries share one record.
        let receiver = Work { app: RECEIVER, bee: BeeId(100), cells: vec![], ..work.clone() };
        let mut turn = vec![Arc::new(work)];
        if emits != 2 {
            self.apply(Record::Turn(std::mem::take(&mut turn)))
        }

        // The receiver is the only bee of another app. Messages of a frozen bee stay in the outbox.
        let open = self.model.open().into_iter().filter(|id| !self.model.is_frozen(id.lane));
        let taken: Vec<_> = open.take(consumes).collect();
        let of = |id: &MessageId| Input { lane: id.lane, floor: None, seq: id.seq, count: 1, part: id.part };
        let inputs = taken.iter().map(of).collect();
        self.model.take(|id| taken.contains(id));
        self.apply(if emits == 1 {
            // The messages had no effect.
            Record::Consumed(vec![Consumed { app: RECEIVER, bee: receiver.bee, inputs, visits: Vec::new() }])
        } else {
            let (emits, redo) = Default::default();
            turn.push(Arc::new(Work { inputs, emits, redo, ..receiver }));
            Record::Turn(turn)
        })
    }

    /// A bee consumes messages that may be repeated.
    fn consume(&mut self, place: u64, input: Input) {
        let (lane, floor) = (input.lane, input.floor.unwrap());
        let Some((bee, work)) = self.runs(place) else { return };
        bee.seen.extend(input.messages().map(|(seq, part)| (lane, seq, part)));
        bee.raise(lane, floor);
        if lane.is_lasting() {
            self.model.raise(lane, floor)
        }
        self.apply(Record::Turn(vec![Arc::new(Work { inputs: [input].into_iter().collect(), ..work })]))
    }

    fn acked(&mut self, count: usize) {
        let messages = self.model.open().into_iter().take(count);
        let acked: Vec<_> = messages.chain(self.model.open_sweeps().into_iter().take(count / 3)).collect();
        let of = |id: &MessageId| Acked { app: id.app, lane: id.lane, seq: id.seq, count: 1, part: id.part };
        let mut runs: Vec<Acked> = Vec::new();
        for acked in acked.iter().map(of) {
            if !runs.last_mut().is_some_and(|last| last.extend(&acked)) {
                runs.push(acked)
            }
        }
        // The outbox of a frozen bee does not change.
        let taken: BTreeSet<_> = acked.into_iter().filter(|id| !self.model.is_frozen(id.lane)).collect();
        self.model.take(|id| taken.contains(id));
        self.apply(Record::Acked(runs))
    }

    fn note(&mut self, change: Untold, view: u64) {
        if view > 0 {
            self.model.untold.push(change)
        }
    }

    fn fuse(&mut self, from: u64, into: u64) {
        let (from, into, view) = (self.id(from), self.id(into), self.view());
        let moves = |bee: &BeeId| self.model.bees.get(bee).is_some_and(|bee| bee.frozen.is_some());
        if from == into || !self.model.bees.contains_key(&into) || moves(&from) || moves(&into) {
            return;
        }
        self.note(Untold::Fused { from, into }, view);
        let record = Record::Fuse { app: APP, from, into, view };
        let Some(gone) = self.model.bees.remove(&from) else {
            // A repeated or late record changes no bee, not even the inherited lanes.
            let heirs = self.state.bees[&(APP, into)].heir_of.clone();
            self.apply(record);
            return assert_eq!(self.state.bees[&(APP, into)].heir_of, heirs);
        };

        self.ended(from);
        let target = self.model.bees.get_mut(&into).unwrap();
        target.cells.extend(gone.cells);
        target.changes.extend(gone.changes);
        target.seen.extend(gone.seen);
        gone.floors.into_iter().for_each(|(lane, floor)| target.raise(lane, floor));
        target.now = target.now.max(gone.now);
        target.merged.extend(gone.merged);
        target.merged.insert(LaneId::of_bee(APP, from));
        let want: BTreeSet<_> = target.merged.clone();
        self.apply(record);

        // The bee has inherited the lanes of bees that have merged into it and that still have unhandled messages.
        let open = self.model.open_lanes();
        let want: BTreeSet<_> = want.intersection(&open).copied().collect();
        assert_eq!(*self.state.bees[&(APP, into)].heir_of, want)
    }

    fn split(&mut self, place: u64, new: u64, cell: usize) {
        let (bee, new, view) = (self.id(place), self.id(new), self.view());
        let open = self.model.open_lanes();
        if self.model.bees.contains_key(&new) || self.model.arriving.contains_key(&new) {
            return;
        }
        let Some(of) = self.model.bees.get_mut(&bee) else { return };
        let has_outbox = of.merged.iter().chain([&LaneId::of_bee(APP, bee)]).any(|lane| open.contains(lane));
        let Some(cell) = of.cells.iter().nth(cell).copied() else { return };
        if has_outbox || of.frozen.is_some() {
            return;
        }
        let key = cell.0 as u8;
        let (goes, stays) = of.changes.iter().partition(|((_, of_cell, _), _)| *of_cell == key);
        of.changes = stays;
        of.cells.remove(&cell);
        let (seen, floors, now) = (of.seen.clone(), of.floors.clone(), of.now);
        let given = Bee { cells: [cell].into(), changes: goes, seen, floors, now, ..Bee::default() };
        self.model.bees.insert(new, given);
        self.model.newest = self.model.newest.max(Some(new));
        let cells = vec![cell];
        self.note(Untold::Split { bee, cells: cells.clone(), new }, view);
        let keys = (0..2).map(|dict| (dict, vec![key])).collect();
        self.apply(Record::Split { app: APP, bee, new, cells, keys, view })
    }
}
