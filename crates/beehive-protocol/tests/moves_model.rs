//! Bees move between logs, merge, send messages and crash. A naive model knows which messages have been handled.
//!
//! Each log is a [`LogState`]. The model simulates everything around the logs: the network, which may deliver a message
//! again; the floors of the lanes; and the process that moves the bees and may crash between any two records.
//! `PROPTEST_CASES` sets the number of histories.

mod partial;

use beehive_protocol::{
    Acked, Address, AppId, BeeId, BeeImage, CellId, ColonyId, Emit, Emits, EncodedCells, Entry, HiveId,
    Input, LaneId, LogState, MessageId, MessageTypeId, Op, Part, Payload, Record, Redo, Seq, StagePart, Time,
    Work, unfinished_moves,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const LOGS: usize = 3;
const BEES: u64 = 3;

type Name = (AppId, BeeId);

/// The next step. An index counts modulo the number of items to choose from.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A bee sends messages to a bee of the other app, without handling a message.
    Send { bee: usize, to: usize, count: u64 },
    /// A message from an outbox arrives, for the first time or again.
    Deliver { message: usize, sends: bool },
    /// A log commits the acknowledgment of a handled message. The sender's outbox may have moved to another log.
    Acknowledge { message: usize, log: usize },
    /// A bee begins to move.
    BeginMove { bee: usize, to: usize },
    /// A move takes its next step.
    ContinueMove { bee: usize },
    /// A bee moves, and no other step comes in between.
    Move { bee: usize, to: usize },
    /// The target log of a move commits nothing, so the bee stays in the source log.
    GiveUpMove { bee: usize },
    /// A bee merges into another one.
    Fuse { from: usize, into: usize },
    /// A log commits the records that nothing has waited for.
    Commit { log: usize },
    /// The process crashes, and the next one continues from the logs. Its first records are not committed yet.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0..64usize;
    prop_oneof![
        4 => (index.clone(), index.clone(), 1..4u64).prop_map(|(bee, to, count)| Step::Send { bee, to, count }),
        8 => (index.clone(), any::<bool>()).prop_map(|(message, sends)| Step::Deliver { message, sends }),
        5 => (index.clone(), 0..LOGS).prop_map(|(message, log)| Step::Acknowledge { message, log }),
        4 => (index.clone(), 0..LOGS).prop_map(|(bee, to)| Step::BeginMove { bee, to }),
        12 => index.clone().prop_map(|bee| Step::ContinueMove { bee }),
        2 => (index.clone(), 0..LOGS).prop_map(|(bee, to)| Step::Move { bee, to }),
        1 => index.clone().prop_map(|bee| Step::GiveUpMove { bee }),
        4 => (index.clone(), index).prop_map(|(from, into)| Step::Fuse { from, into }),
        1 => (0..LOGS).prop_map(|log| Step::Commit { log }),
        3 => Just(Step::Crash),
    ]
}

/// The last completed step of a move.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    Frozen,
    Bee,
    Rows,
    Outbox,
}

struct Bee {
    /// The log that contains the bee.
    log: usize,
    next: Seq,
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The target log and the last completed step, if the bee is moving.
    moves: Option<(usize, Stage)>,
    /// Number of frozen copies that other logs have not dropped yet.
    left: usize,
}

#[derive(Default)]
struct Run {
    logs: Vec<LogState>,
    /// For each log, records that were appended and are not committed. The process acts as if they were.
    told: Vec<VecDeque<Record>>,
    bees: BTreeMap<Name, Bee>,
    /// The bees that have merged, each with the bee into which it merged.
    merged: BTreeMap<Name, Name>,
    /// All messages, with their receivers.
    sent: BTreeMap<MessageId, Name>,
    handled: BTreeSet<MessageId>,
    acknowledged: BTreeSet<MessageId>,
}

fn emit_of(id: MessageId) -> Emit {
    Emit {
        id,
        message_type: MessageTypeId(1),
        payload: Payload::from(&[7][..]),
        at: None,
        is_sweep: false,
        position: None,
        origin: HiveId(0),
        sender: Address::App(id.app),
        hops: 0,
        chain: 0,
        chance: 0,
    }
}

fn apply_to(state: &mut LogState, record: Record) {
    let (number, after) = (state.last.next(), state.last);
    partial::apply(state, &Entry { number, after, record })
}

impl Run {
    fn new() -> Run {
        let mut run = Run {
            logs: vec![LogState::default(); LOGS],
            told: vec![VecDeque::new(); LOGS],
            ..Run::default()
        };
        for (app, bee) in (0..2).flat_map(|app| (1..=BEES).map(move |bee| (app, bee))) {
            let (name, log) = ((AppId(app), BeeId(bee)), bee as usize / 2 % LOGS);
            let (next, rows) = Default::default();
            run.bees.insert(name, Bee { log, next, rows, moves: None, left: 0 });
            run.work(name, Vec::new(), Vec::new());
        }
        run
    }

    /// Commits a record, after all records that were appended to the log before.
    fn commit(&mut self, log: usize, record: Record) {
        while let Some(earlier) = self.told[log].pop_front() {
            if let Record::Drop { app, bee, .. } = earlier {
                self.bee_mut((app, bee)).left -= 1
            }
            self.apply(log, earlier)
        }
        self.apply(log, record)
    }

    fn apply(&mut self, log: usize, record: Record) {
        apply_to(&mut self.logs[log], record)
    }

    /// Returns the state of a log when everything that was appended is committed.
    fn promised(&self, log: usize) -> LogState {
        let mut state = self.logs[log].clone();
        for record in &self.told[log] {
            apply_to(&mut state, record.clone())
        }
        state
    }

    /// Returns the bee that now receives messages for `name`.
    fn owner(&self, mut name: Name) -> Name {
        while let Some(into) = self.merged.get(&name) {
            name = *into
        }
        name
    }

    fn bee_mut(&mut self, name: Name) -> &mut Bee {
        self.bees.get_mut(&name).expect("a bee that has not merged")
    }

    fn nth(&self, index: usize) -> Name {
        *self.bees.keys().nth(index % self.bees.len()).expect("there is a bee")
    }

    /// Returns the messages that must be in an outbox.
    fn open(&self) -> Vec<MessageId> {
        self.sent.keys().filter(|id| !self.acknowledged.contains(id)).copied().collect()
    }

    /// Returns the log that contains the outbox of a lane, and whether the outbox is frozen.
    fn outbox_of(&self, lane: LaneId) -> (usize, bool) {
        let bee = &self.bees[&self.owner(lane.bee().expect("all lanes are those of bees"))];
        (bee.log, bee.moves.is_some())
    }

    fn floor(&self, lane: LaneId, app: AppId) -> Seq {
        let open = self.open().into_iter().find(|id| id.lane == lane && id.app == app);
        let newest = self.sent.keys().filter(|id| id.lane == lane).map(|id| id.seq.next()).max();
        open.map_or(newest.unwrap_or_default(), |open| open.seq)
    }

    fn work(&mut self, name: Name, inputs: Vec<(MessageId, Input)>, sends: Vec<Name>) {
        let (app, bee) = name;
        let lane = LaneId::of_bee(app, bee);
        let state = self.bees.get_mut(&name).expect("a bee that has not merged");
        let mut emits = Emits::default();
        for to in sends {
            let id = MessageId { lane, seq: state.next, part: Part::WHOLE, app: to.0 };
            state.next = state.next.next();
            self.sent.insert(id, to);
            emits.push(emit_of(id))
        }
        let mut redo = Redo::default();
        for (id, _) in &inputs {
            let row = format!("{id:?}").into_bytes();
            let count = state.rows.entry(row.clone()).or_insert_with(|| vec![0]);
            count[0] += 1;
            redo.push(Op { dict: 0, key: &bee.0.to_be_bytes(), row: Some(&row), value: Some(count) });
        }
        let (log, next_seq) = (state.log, state.next);
        let inputs = inputs.into_iter().map(|(_, input)| input).collect();
        let work = Work {
            app,
            bee,
            cells: vec![CellId(bee.0)],
            inputs,
            visits: Vec::new(),
            redo,
            emits,
            next_seq,
            now: Time::ZERO,
        };
        self.commit(log, Record::Turn(vec![Arc::new(work)]))
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send { bee, to, count } => {
                let name = self.nth(bee);
                let others: Vec<Name> = self.bees.keys().filter(|to| to.0 != name.0).copied().collect();
                let to = others[to % others.len()];
                if self.bees[&name].moves.is_none() {
                    self.work(name, Vec::new(), vec![to; count as usize])
                }
            }
            Step::Deliver { message, sends } => {
                let open = self.open();
                if !open.is_empty() {
                    self.deliver(open[message % open.len()], sends)
                }
            }
            Step::Acknowledge { message, log } => {
                let done: Vec<_> = self.open().into_iter().filter(|id| self.handled.contains(id)).collect();
                if !done.is_empty() {
                    self.acknowledge(done[message % done.len()], log)
                }
            }
            Step::BeginMove { bee, to } => {
                let name = self.nth(bee);
                let Bee { log, moves: None, .. } = self.bees[&name] else { return };
                if log != to {
                    let lanes = self.lanes(name);
                    self.commit(
                        log,
                        Record::Freeze {
                            app: name.0,
                            bee: name.1,
                            lanes,
                            to: ColonyId(to as u32 + 1),
                            view: 0,
                        },
                    );
                    self.bee_mut(name).moves = Some((to, Stage::Frozen))
                }
            }
            Step::ContinueMove { bee } => self.continue_move(self.nth(bee)),
            Step::Move { bee, to } => {
                let name = self.nth(bee);
                self.step(Step::BeginMove { bee, to });
                self.finish_move(name)
            }
            Step::GiveUpMove { bee } => {
                let (app, bee) = self.nth(bee);
                let Bee { log, moves: Some((to, _)), .. } = self.bees[&(app, bee)] else { return };
                let epoch = self.logs[log].bees[&(app, bee)].epoch;
                self.commit(log, Record::Thaw { app, bee, epoch, view: 0 });
                self.told[to].push_back(Record::Unstage { app, bee, view: 0 });
                self.bee_mut((app, bee)).moves = None
            }
            Step::Fuse { from, into } => self.fuse(self.nth(from), self.nth(into)),
            Step::Commit { log } => self.commit(log, Record::Consumed(Vec::new())),
            Step::Crash => self.crash(),
        }
    }

    fn deliver(&mut self, id: MessageId, sends: bool) {
        let name = self.owner(self.sent[&id]);
        if self.bees[&name].moves.is_some() {
            return;
        }

        let image = &self.logs[self.bees[&name].log].bees[&name];
        let is_new = !image.seen.contains(id.lane, id.seq, id.part);
        assert_eq!(is_new, !self.handled.contains(&id), "{id:?} is handled once");
        if is_new {
            let floor = Some(self.floor(id.lane, id.app));
            let input = Input { lane: id.lane, floor, seq: id.seq, count: 1, part: id.part };
            self.handled.insert(id);
            let reply = id.lane.bee().map(|sender| self.owner(sender)).filter(|_| sends);
            self.work(name, vec![(id, input)], reply.into_iter().collect())
        }
    }

    fn acknowledge(&mut self, id: MessageId, log: usize) {
        let acked = Acked { app: id.app, lane: id.lane, seq: id.seq, count: 1, part: id.part };
        self.commit(log, Record::Acked(vec![acked]));
        if self.outbox_of(id.lane) == (log, false) {
            self.acknowledged.insert(id);
        }
    }

    /// Returns the lanes that make up the outbox of a bee.
    fn lanes(&self, name: Name) -> Vec<LaneId> {
        let own = LaneId::of_bee(name.0, name.1);
        let image = &self.logs[self.bees[&name].log].bees[&name];
        let open = self.open();
        let heirs = image.heir_of.iter().copied().filter(|lane| open.iter().any(|id| id.lane == *lane));
        std::iter::once(own).chain(heirs).collect()
    }

    fn continue_move(&mut self, (app, bee): Name) {
        let Bee { log, moves: Some((to, stage)), .. } = self.bees[&(app, bee)] else { return };
        let image = self.logs[log].bees[&(app, bee)].clone();
        let epoch = image.epoch.next();
        let staged = |part, at| Record::Stage { app, bee, epoch, part, at, of: u32::MAX, view: 0 };
        let next = self.logs[to].staged.get(&(app, bee)).map_or(0, |staged| staged.parts);
        match stage {
            Stage::Frozen => {
                let state = EncodedCells::default();
                let image = BeeImage { state, epoch, leaves_for: None, ..*image };
                self.commit(to, staged(StagePart::Bee(Box::new(image)), 0))
            }
            Stage::Bee => {
                for (at, cell) in (next..).zip(image.state.images()) {
                    self.commit(to, staged(StagePart::Rows(vec![cell]), at))
                }
            }
            Stage::Rows => {
                let lanes = self.lanes((app, bee));
                let mut outbox: Vec<_> =
                    self.logs[log].outbox.values().filter(|one| lanes.contains(&one.emit.id.lane)).collect();
                outbox.sort_by_key(|waiting| waiting.order);
                let outbox = outbox.into_iter().map(|waiting| waiting.emit.clone()).collect();
                self.commit(to, staged(StagePart::Outbox(Emits(outbox)), next))
            }
            Stage::Outbox => {
                self.commit(to, Record::Adopt { app, bee, epoch, view: 0 });
                self.told[log].push_back(Record::Drop { app, bee, view: 0 });
                let moved = self.bee_mut((app, bee));
                (moved.log, moved.moves) = (to, None);
                return moved.left += 1;
            }
        }
        let stage = match stage {
            Stage::Frozen => Stage::Bee,
            Stage::Bee => Stage::Rows,
            Stage::Rows | Stage::Outbox => Stage::Outbox,
        };
        self.bee_mut((app, bee)).moves = Some((to, stage))
    }

    fn finish_move(&mut self, name: Name) {
        while self.bees[&name].moves.is_some() {
            self.continue_move(name)
        }
    }

    fn fuse(&mut self, from: Name, into: Name) {
        let rests = |name: Name| self.bees[&name].moves.is_none();
        let is_possible = from != into && from.0 == into.0 && rests(from) && rests(into);
        if !is_possible || self.bees[&from].log != self.bees[&into].log || self.bees[&from].left > 0 {
            return;
        }
        let gone = self.bees.remove(&from).expect("a bee that has not merged");
        self.merged.insert(from, into);
        self.bee_mut(into).rows.extend(gone.rows);
        self.commit(gone.log, Record::Fuse { app: from.0, from: from.1, into: into.1, view: 0 })
    }

    /// The next process appends the records that finish the moves, and waits for none of them. So it may crash, too, after other
    /// logs have committed more.
    fn crash(&mut self) {
        self.told.iter_mut().for_each(VecDeque::clear);
        for bee in self.bees.values_mut() {
            (bee.moves, bee.left) = (None, 0)
        }
        let states: Vec<&LogState> = self.logs.iter().collect();
        for (log, record) in unfinished_moves(&states) {
            if let Record::Drop { app, bee, .. } = record {
                self.bee_mut((app, bee)).left += 1
            }
            self.told[log].push_back(record)
        }

        let promised: Vec<LogState> = (0..LOGS).map(|log| self.promised(log)).collect();
        for state in &promised {
            assert!(state.staged.is_empty() && state.frozen.is_empty(), "no move is under way");
            assert!(state.bees.values().all(|image| !image.is_frozen()));
        }
        let copies = |name| promised.iter().filter(|state| state.bees.contains_key(name)).count();
        for name in self.bees.keys() {
            assert_eq!(copies(name), 1, "{name:?} is in one log")
        }
        for name in self.merged.keys() {
            assert_eq!(copies(name), 0, "{name:?} has merged, and does not come back")
        }
    }

    fn check(&self) {
        let promised: Vec<LogState> = (0..LOGS).map(|log| self.promised(log)).collect();
        for id in self.open() {
            let (log, _) = self.outbox_of(id.lane);
            assert!(promised[log].outbox.contains_key(&id), "{id:?} is in the outbox of its bee");
        }
        for (name, bee) in &self.bees {
            let image = &promised[bee.log].bees[name];
            assert_eq!(image.is_frozen(), bee.moves.is_some());
            assert!(image.next_seq >= bee.next, "a number is used twice");
            let images = image.state.images();
            let rows: BTreeMap<Vec<u8>, Vec<u8>> = images.flat_map(|cell| cell.rows).collect();
            assert_eq!(rows, bee.rows, "{name:?} has handled what the model says");
        }
    }

    /// Completes all moves and handles all messages.
    fn finish(&mut self) {
        for name in self.bees.keys().copied().collect::<Vec<_>>() {
            self.finish_move(name)
        }
        for id in self.open() {
            self.deliver(id, false);
            self.acknowledge(id, self.outbox_of(id.lane).0)
        }
        (0..LOGS).for_each(|log| self.commit(log, Record::Consumed(Vec::new())));

        assert_eq!(self.handled.len(), self.sent.len());
        for state in &self.logs {
            assert!(state.outbox.is_empty() && state.staged.is_empty() && state.frozen.is_empty());
        }
        self.check();
        assert!(self.bees.values().flat_map(|bee| bee.rows.values()).all(|count| *count == [1]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_message_is_handled_once_by_bees_that_move(steps in prop::collection::vec(step(), 0..150)) {
        let mut run = Run::new();
        for step in steps {
            run.step(step);
            run.check()
        }
        run.finish()
    }
}

/// A crash between the `Adopt` of a move and its `Drop`, and another one before the log of the `Drop` has committed anything.
/// Meanwhile the bee is to merge in its new log.
#[test]
fn a_moved_bee_does_not_merge_before_the_next_process_has_dropped_its_old_copy() {
    let mut run = Run::new();
    // bees 1 of both apps are in log 0, the others in log 1
    for step in [Step::Move { bee: 0, to: 1 }, Step::Crash, Step::Fuse { from: 0, into: 1 }, Step::Crash] {
        run.step(step);
        run.check()
    }
    assert_eq!((run.merged.len(), run.bees[&(AppId(0), BeeId(1))].left), (0, 1));

    for step in [Step::Commit { log: 0 }, Step::Fuse { from: 0, into: 1 }, Step::Crash] {
        run.step(step);
        run.check()
    }
    assert_eq!(run.merged.len(), 1);
    run.finish()
}
