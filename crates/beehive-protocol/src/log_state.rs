//! The state machine of the replicated log: the state that results from applying the log's entries.

use crate::codec::DecodeError;
use crate::{
    Acked, AppId, BeeId, CellId, ColonyId, CrashMarker, DedupTable, Emit, Emits, EncodedCells, Entry,
    EntryNumber, Epoch, FewSet, Input, LaneId, LaneSet, LogPlace, LoggedSettings, MessageId, Part, Record,
    Seq, Shapes, Time, Untold, Visited, Work,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One bee as a log describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeeImage {
    /// The cells it owns.
    pub cells: FewSet<CellId>,
    /// The contents of the cells.
    pub state: EncodedCells,
    /// The messages it has handled, except those from this log's outbox.
    pub seen: DedupTable,
    /// The next free number of its lane.
    pub next_seq: Seq,
    /// The latest time seen by its handlers.
    pub now: Time,
    /// Lanes of bees that merged into this one and had unhandled messages at the last merge or move.
    pub heir_of: LaneSet,
    /// Number of times that the bee has moved from one log to another.
    pub epoch: Epoch,
    /// The colony to which the bee is about to move. If there is one, the bee is frozen: it handles no messages, and its
    /// outbox does not change.
    pub leaves_for: Option<ColonyId>,
}

/// The staged parts of a bee that is about to move to this log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staged {
    /// The bee, with its epoch after the move.
    pub bee: Box<BeeImage>,
    /// The bee's outbox, in the order in which the messages were emitted.
    pub outbox: Emits,
    /// Number of parts that are staged.
    pub parts: u32,
    /// Number of parts in all.
    pub of: u32,
}

impl Staged {
    /// Checks whether all parts are staged.
    pub const fn is_complete(&self) -> bool {
        self.of > 0 && self.parts == self.of
    }
}

impl BeeImage {
    /// Checks whether the bee is about to move.
    pub const fn is_frozen(&self) -> bool {
        self.leaves_for.is_some()
    }
}

/// An emitted message that has not yet been handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Position of the message among all messages emitted by the log's records, counted from 1.
    pub order: u64,
    /// The message.
    pub emit: Emit,
}

/// A sweep that is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// The message that visits every cell.
    pub waiting: Waiting,
    /// The first cell, in the order of [`sweep_order`](crate::sweep_order), that the sweep has not reached. `None` if it
    /// has reached all cells.
    pub next: Option<CellId>,
    /// Cells that the sweep has reached but whose visits have not yet been handled.
    pub open: BTreeSet<CellId>,
    /// The message that began the sweep, if the sweep has a number on another lane. The sender's later messages to a cell
    /// must not arrive before the visit.
    pub began_by: Option<MessageId>,
}

/// The state that results from applying a log: the bees, the messages still to be handled, the unfinished sweeps, and
/// the messages handled without a bee.
///
/// Equal logs give equal states on every hive, because [`LogState::apply`] depends only on the entry and the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogState {
    /// Number of the last entry that took effect.
    pub last: EntryNumber,
    /// The bees. They are boxed, because most nodes of a tree have room for more entries than they have.
    pub bees: BTreeMap<(AppId, BeeId), Box<BeeImage>>,
    /// The bees that are about to move to this log.
    pub staged: BTreeMap<(AppId, BeeId), Staged>,
    /// The lanes of the frozen bees.
    pub frozen: BTreeSet<LaneId>,
    /// Emitted messages that have not yet been handled.
    pub outbox: BTreeMap<MessageId, Waiting>,
    /// Sweeps that are not finished.
    pub sweeps: BTreeMap<MessageId, Sweep>,
    /// Number of messages emitted so far.
    pub emitted: u64,
    /// The floors of the lanes that may continue after a crash, and the messages consumed without a bee.
    pub seen: DedupTable,
    /// For each app, the highest bee id that has been in the log. Later bees must have higher ids; otherwise an earlier
    /// bee's messages could be taken for those of a later one.
    pub newest: BTreeMap<AppId, BeeId>,
    /// The next free number of each lane of an app ([`LaneId::of_app`]).
    pub next_seqs: BTreeMap<LaneId, Seq>,
    /// The latest settings, by app.
    pub settings: BTreeMap<AppId, LoggedSettings>,
    /// The schema of everything in the log.
    pub shapes: Shapes,
    /// The highest index of the registry on which a record of the log is based. A leader works only while its replica of
    /// the registry has reached it.
    pub known: u64,
    /// Changes that the log has decided and that the registry has not confirmed. Always empty if the log decides alone.
    pub untold: Vec<Untold>,
    /// The marker of the hive that uses the log. `None` if that hive has stopped cleanly. If a starting hive finds a
    /// marker, the previous process crashed.
    pub marker: Option<CrashMarker>,
    /// The latest time in the log.
    pub now: Time,
    /// The log's place among the logs of its hive. `None` if no record says it. In a snapshot, it is apart from the other fields:
    /// snapshots of early versions do not contain it.
    #[serde(skip)]
    pub place: Option<LogPlace>,
}

impl LogState {
    /// Applies an entry. Returns whether it took effect.
    ///
    /// An entry executed on a different state is ignored: its `entry.after` is not the last entry that took effect. The
    /// first entry of a later term is executed on any state.
    pub fn apply(&mut self, entry: &Entry) -> bool {
        let begins_term = matches!(entry.record, Record::Blank) && entry.number.term() > self.last.term();
        if entry.after != self.last && !begins_term {
            return false;
        }
        debug_assert!(entry.number > self.last, "entry {:?} comes after {:?}", entry.number, self.last);
        self.last = entry.number;
        self.carry_out(&entry.record);
        true
    }

    /// Begins a term: returns its first entry, which is already applied to this state. The entry must be in the log before
    /// the hive's first one.
    ///
    /// # Panics
    ///
    /// Panics if the term is not above the term of [`LogState::last`], or above [`EntryNumber::TERM_MAX`].
    pub fn begin_term(&mut self, term: u64) -> Entry {
        assert!(term > self.last.term(), "the log is in term {} already", self.last.term());
        let entry = Entry { number: EntryNumber::first_of(term), after: self.last, record: Record::Blank };
        self.apply(&entry);
        entry
    }

    /// Applies a record as if the next entry contained it. A starting hive uses this for the records that it appends
    /// before all others, so that they are in effect for everything it does.
    pub fn carry_out(&mut self, record: &Record) {
        self.known = self.known.max(record.view());
        match record {
            Record::Turn(works) => works.iter().for_each(|work| self.work(work)),
            Record::Admit { app, handler, input, emits } => {
                let mut consumed = DedupTable::default();
                for (seq, part) in input.messages() {
                    let id = MessageId { lane: input.lane, seq, part, app: *app };
                    // A message on a lane that ends with the process is never resent.
                    let may_repeat = input.lane.is_lasting() || !input.lane.is_outside();
                    if !self.take_from_outbox(&id, input) && may_repeat {
                        consumed.insert(input.lane, seq, part.derived(*app, *handler))
                    }
                }
                self.seen.absorb(consumed);
                self.raise_floor(input);
                if self.seen.contains_lane(input.lane) {
                    self.seen.raise(input.lane, input.floor.unwrap_or_default())
                }
                let Input { lane, seq, part, .. } = *input;
                self.emit(emits, Some(MessageId { lane, seq, part, app: *app }))
            }
            Record::Expand { sweep, cells, gone, next } => {
                if let Some(open) = self.sweeps.get_mut(sweep) {
                    open.open.extend(cells.iter().copied());
                    gone.iter().for_each(|cell| {
                        open.open.remove(cell);
                    });
                    open.next = *next;
                }
                self.close_if_over(sweep)
            }
            Record::Fuse { app, from, into, view } => {
                self.fuse(*app, *from, *into);
                self.note(Untold::Fused { from: *from, into: *into }, *view)
            }
            Record::Release { app, bee, floors, view } => {
                self.bees.remove(&(*app, *bee));
                self.note(Untold::Released { bee: *bee }, *view);
                floors.iter().for_each(|(lane, floor)| self.seen.raise(*lane, *floor))
            }
            Record::Shapes(shapes) => self.shapes = shapes.clone(),
            Record::Retire { lanes, .. } => {
                for seen in self.bees.values_mut().map(|bee| &mut bee.seen).chain([&mut self.seen]) {
                    lanes.iter().for_each(|lane| seen.forget(*lane))
                }
            }
            Record::Settings { settings } => {
                for (app, new) in settings {
                    let known = self.settings.entry(*app).or_default();
                    // Two concurrent changes may be logged in either order.
                    if new.version > known.version {
                        known.clone_from(new)
                    }
                }
            }
            Record::Acked(all) => all.iter().for_each(|acked| self.acknowledged(acked)),
            Record::Consumed(all) => {
                all.iter().for_each(|one| self.consume(one.app, one.bee, &one.inputs, &one.visits))
            }
            Record::Visited(visits) => visits.iter().for_each(|visited| self.visited(visited)),
            Record::Freeze { app, bee, lanes, to, .. } => self.freeze((*app, *bee), lanes, *to),
            Record::Stage { app, bee, epoch, part, at, of, .. } => {
                self.stage((*app, *bee), *epoch, part, (*at, *of))
            }
            Record::Adopt { app, bee, epoch, .. } => self.adopt(*app, *bee, *epoch),
            Record::Unstage { app, bee, .. } => {
                self.staged.remove(&(*app, *bee));
            }
            Record::Drop { app, bee, .. } => self.forget_moved(*app, *bee),
            Record::Thaw { app, bee, epoch, .. } => self.thaw(*app, *bee, *epoch),
            Record::Create { app, bee, .. } => self.create(*app, *bee),
            Record::Split { app, bee, new, cells, keys, view } => {
                self.split(*app, *bee, *new, (cells, keys));
                self.note(Untold::Split { bee: *bee, cells: cells.clone(), new: *new }, *view)
            }
            Record::Told { what, .. } => self.untold.retain(|untold| untold != what),
            Record::Mark { marker } => self.marker.clone_from(marker),
            Record::Blank => {}
            Record::Time(now) => self.now = self.now.max(*now),
            Record::Place(place) => self.place = Some(*place),
        }
    }

    /// Applies all entries of an encoded log to an empty state. Like [`LogState::apply`], this ignores
    /// entries that do not take effect.
    ///
    /// # Errors
    ///
    /// Returns an error if an entry cannot be decoded.
    pub fn replay<'a>(log: impl IntoIterator<Item = &'a [u8]>) -> Result<LogState, DecodeError> {
        let mut state = LogState::default();
        for bytes in log {
            state.apply(&Entry::decode(bytes)?);
        }

        debug_assert!(state.has_one_owner_per_cell(), "a cell belongs to two bees of an app");
        Ok(state)
    }

    /// Checks whether each cell belongs to at most one bee of its app. This holds for every log written by a hive.
    pub fn has_one_owner_per_cell(&self) -> bool {
        let mut owned = BTreeSet::new();
        let mut cells =
            self.bees.iter().flat_map(|((app, _), bee)| bee.cells.iter().map(move |cell| (*app, *cell)));
        cells.all(|cell| owned.insert(cell))
    }

    /// Checks whether a message or sweep sent on `lane` still has to be handled.
    pub(crate) fn is_waited_on(&self, lane: LaneId) -> bool {
        self.outbox.range(MessageId::all_of(lane)).next().is_some()
            || self.sweeps.range(MessageId::all_of(lane)).next().is_some()
    }

    /// Removes a consumed message from the outbox and returns whether it was there. Does nothing if the message may
    /// arrive again (`input.floor` is set): the receiver remembers the message, and the message stays in its outbox
    /// until it is acknowledged, because that outbox may be in another log or about to move to one.
    fn take_from_outbox(&mut self, id: &MessageId, input: &Input) -> bool {
        input.floor.is_none() && self.outbox.remove(id).is_some()
    }

    /// Removes acknowledged messages from the outbox, unless they belong to a frozen bee.
    fn acknowledged(&mut self, acked: &Acked) {
        if self.frozen.contains(&acked.lane) {
            return;
        }
        // A sweep for an app in another log stays here until that log has committed it.
        if acked.count as usize <= self.outbox.len() + self.sweeps.len() {
            acked.messages().for_each(|id| {
                self.outbox.remove(&id);
                self.sweeps.remove(&id);
            })
        } else {
            // nothing bounds the length of a run in a record
            self.outbox.retain(|id, _| !acked.contains(id));
            self.sweeps.retain(|id, _| !acked.contains(id))
        }
    }

    fn work(&mut self, work: &Work) {
        let newest = self.newest.entry(work.app).or_insert(work.bee);
        *newest = work.bee.max(*newest);
        let bee = self.bees.entry((work.app, work.bee)).or_default();
        debug_assert!(!bee.is_frozen(), "{} handled messages, although it is about to move", work.bee);
        bee.cells.extend(work.cells.iter().copied());
        work.redo.iter().for_each(|op| bee.state.apply(op));
        bee.next_seq = bee.next_seq.max(work.next_seq);
        bee.now = bee.now.max(work.now);
        self.now = self.now.max(work.now);

        self.consume(work.app, work.bee, &work.inputs, &work.visits);
        self.emit(&work.emits, None)
    }

    /// Records that a bee has handled messages and visits.
    fn consume(&mut self, app: AppId, bee: BeeId, inputs: &[Input], visits: &[Visited]) {
        let mut bee = self.bees.get_mut(&(app, bee));
        for input in inputs {
            let taken = match input.floor {
                None => take_run(&mut self.outbox, app, input),
                Some(_) => Vec::new(),
            };
            let Some(bee) = &mut bee else { continue };
            if input.part.is_whole() {
                // nothing bounds the length of a run in a record, so this must not take a step for each message
                let mut first = input.seq;
                for seq in taken {
                    bee.seen.insert_run(input.lane, first, seq);
                    first = seq.next()
                }
                bee.seen.insert_run(input.lane, first, input.end())
            } else if taken.is_empty() {
                bee.seen.insert(input.lane, input.seq, input.part)
            }
            bee.seen.raise(input.lane, input.floor.unwrap_or_default())
        }
        inputs.iter().for_each(|input| self.raise_floor(input));

        visits.iter().for_each(|visited| self.visited(visited))
    }

    fn visited(&mut self, visited: &Visited) {
        if let Some(sweep) = self.sweeps.get_mut(&visited.sweep) {
            visited.cells.iter().for_each(|cell| {
                sweep.open.remove(cell);
            })
        }
        self.close_if_over(&visited.sweep)
    }

    /// If the lane may continue after a crash, keeps its floor in the log's own state, because the bee that knows the
    /// floor may end.
    fn raise_floor(&mut self, input: &Input) {
        if input.lane.is_lasting() {
            self.seen.raise(input.lane, input.floor.unwrap_or_default())
        }
    }

    /// Adds emitted messages to the outbox. `cause` is the message that was consumed without a bee, if one was.
    pub(crate) fn emit(&mut self, emits: &[Emit], cause: Option<MessageId>) {
        for emit in emits {
            self.emitted += 1;
            if emit.id.lane.is_of_app() {
                let next = self.next_seqs.entry(emit.id.lane).or_default();
                *next = emit.id.seq.next().max(*next)
            }
            let waiting = Waiting { order: self.emitted, emit: emit.clone() };

            if emit.is_sweep {
                let began_by = cause.filter(|cause| *cause != emit.id);
                let sweep = Sweep { waiting, next: Some(CellId(0)), open: BTreeSet::new(), began_by };
                self.sweeps.insert(emit.id, sweep);
            } else {
                self.outbox.insert(emit.id, waiting);
            }
        }
    }

    fn close_if_over(&mut self, sweep: &MessageId) {
        if self.sweeps.get(sweep).is_some_and(|sweep| sweep.next.is_none() && sweep.open.is_empty()) {
            self.sweeps.remove(sweep);
        }
    }
}

/// Removes those of the consumed messages that an outbox contains. Returns their numbers, in ascending order.
fn take_run(outbox: &mut BTreeMap<MessageId, Waiting>, app: AppId, input: &Input) -> Vec<Seq> {
    let Input { lane, seq, count, part, .. } = *input;
    let first = MessageId { lane, seq, part, app };
    if count == 1 {
        return outbox.remove(&first).map(|_| seq).into_iter().collect();
    }
    if input.end() <= seq {
        return Vec::new();
    }
    let ids = outbox.range(first..MessageId { seq: input.end(), part: Part::WHOLE, app: AppId(0), ..first });
    let ids = ids.filter(|(id, _)| (id.app, id.part) == (app, part));
    let taken: Vec<Seq> = ids.map(|(id, _)| id.seq).collect();
    taken.iter().for_each(|seq| {
        outbox.remove(&MessageId { seq: *seq, ..first });
    });
    taken
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Address, HiveId, MessageTypeId, Part, Payload};
    use std::sync::Arc;

    const APP: AppId = AppId(0);

    fn lane(bee: u64) -> LaneId {
        LaneId::of_bee(APP, BeeId(bee))
    }

    pub(crate) fn emit(bee: u64, seq: u64) -> Emit {
        Emit {
            id: MessageId { lane: lane(bee), seq: Seq(seq), part: Part::WHOLE, app: AppId(1) },
            message_type: MessageTypeId(1),
            payload: Payload::from(&[][..]),
            at: None,
            is_sweep: false,
            position: None,
            origin: HiveId(0),
            sender: Address::App(APP),
            hops: 0,
            chain: 0,
            chance: 0,
        }
    }

    fn work(bee: u64, emits: Vec<Emit>, inputs: Vec<Input>, app: AppId) -> Record {
        Record::Turn(vec![Arc::new(Work {
            app,
            bee: BeeId(bee),
            cells: vec![CellId(bee)],
            inputs: inputs.into(),
            visits: Vec::new(),
            redo: Default::default(),
            emits: Emits(emits),
            next_seq: Seq(9),
            now: Time::ZERO,
        })])
    }

    /// A bee inherits the lanes of the bees that merged into it, directly or through other bees, as long as a message on
    /// such a lane is unhandled.
    #[test]
    fn lanes_are_inherited_while_something_waits_there() {
        let mut state = LogState::default();
        let mut apply = |record| {
            let (number, after) = (state.last.next(), state.last);
            assert!(state.apply(&Entry { number, after, record }));
            state.clone()
        };
        for bee in 1..=4 {
            apply(work(bee, if bee == 3 { Vec::new() } else { vec![emit(bee, 0)] }, Vec::new(), APP));
        }

        let fuse = |from, into| Record::Fuse { app: APP, from: BeeId(from), into: BeeId(into), view: 0 };
        let heirs = |state: &LogState, bee| state.bees[&(APP, BeeId(bee))].heir_of.clone();
        let lanes = |bees: &[u64]| bees.iter().map(|bee| lane(*bee)).collect::<LaneSet>();
        assert_eq!(heirs(&apply(fuse(1, 2)), 2), lanes(&[1]));
        assert_eq!(heirs(&apply(fuse(3, 4)), 4), lanes(&[]), "no message is unhandled on that lane");
        assert_eq!(heirs(&apply(fuse(2, 4)), 4), lanes(&[1, 2]));

        // The message of the first bee is handled.
        let input = Input { lane: lane(1), floor: None, seq: Seq(0), count: 1, part: Part::WHOLE };
        apply(work(9, Vec::new(), vec![input], AppId(1)));
        apply(work(5, Vec::new(), Vec::new(), APP));
        assert_eq!(heirs(&apply(fuse(5, 4)), 4), lanes(&[2]));
    }

    /// If an operator changes settings while a hive starts, the log may contain the new settings and the settings of
    /// the start in either order.
    #[test]
    fn the_newest_settings_stay() {
        let of = |version, table: &str| (APP, LoggedSettings { version, table: table.into() });
        let mut state = LogState::default();
        for (number, settings) in [(1, of(2, "a = 2")), (2, of(1, "a = 1"))] {
            let (number, after) = (EntryNumber(number), EntryNumber(number - 1));
            assert!(state.apply(&Entry {
                number,
                after,
                record: Record::Settings { settings: vec![settings] }
            }));
        }
        assert_eq!(state.settings[&APP], of(2, "a = 2").1);
    }

    /// A hive that was replaced while its last entries were on their way.
    #[test]
    fn after_the_first_entry_of_a_term_none_of_an_earlier_one_takes_effect() {
        let mut state = LogState::default();
        let first = EntryNumber::first_of(1);
        let blank = |term, after| Entry { number: EntryNumber::first_of(term), after, record: Record::Blank };
        let time = |number, after| Entry { number, after, record: Record::Time(Time::from_nanoseconds(9)) };
        assert!(state.apply(&blank(1, EntryNumber(0))));
        let late = time(first.next(), first);
        assert!(state.apply(&blank(2, first.next())), "executed on an entry that never came");
        assert_eq!(state.last, EntryNumber::first_of(2));
        assert!(!state.apply(&late) && !state.apply(&blank(1, first)) && !state.apply(&blank(2, first)));
        assert_eq!(state.now, Time::ZERO);
        assert!(state.apply(&time(state.last.next(), state.last)));
        assert_eq!((state.last.to_string(), state.now), ("2.1".to_string(), Time::from_nanoseconds(9)));
        let last = state.last;
        assert_eq!(state.begin_term(7), blank(7, last));
        assert_eq!(state.last, EntryNumber::first_of(7));
    }

    #[test]
    #[should_panic = "in term 7 already"]
    fn a_term_begins_once() {
        let mut state = LogState::default();
        state.begin_term(7);
        state.begin_term(7);
    }

    /// Each number is used once. An entry with an already used number comes from a buggy hive.
    #[test]
    #[cfg_attr(debug_assertions, should_panic = "comes after")]
    fn entry_numbers_increase() {
        let mut state = LogState { last: EntryNumber(7), ..LogState::default() };
        let record = Record::Retire { lanes: Vec::new(), view: 0 };
        state.apply(&Entry { number: EntryNumber(7), after: EntryNumber(7), record });
    }
}
