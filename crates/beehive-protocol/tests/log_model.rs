//! Compares the state machine of the log with a naive model, which keeps lists of everything that has happened.

mod partial;

use beehive_protocol::{
    Acked, Address, AppId, BeeId, CellId, Consumed, Emit, Emits, Entry, EntryNumber, HandlerId, HiveId,
    Input, LaneId, LogState, MessageId, MessageTypeId, Op, Part, Payload, Record, Redo, Seq, Time, Visited,
    Work,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

const APP: AppId = AppId(0);
const RECEIVER: AppId = AppId(1);
const BEES: u64 = 5;
const OUTSIDE: [LaneId; 2] = [LaneId::passing(1), LaneId::lasting(1)];
/// Lanes of bees whose records are in another log.
const OF_ANOTHER_LOG: [LaneId; 2] = [LaneId::of_bee(AppId(7), BeeId(1)), LaneId::of_app(AppId(7))];

/// The next step of the hive. An index counts modulo the number of items to choose from.
#[derive(Clone, Debug)]
enum Step {
    /// A bee emits, and consumes the oldest messages in the outbox.
    Work {
        bee: u64,
        emits: usize,
        consumes: usize,
    },
    /// A bee consumes messages of an outside lane, possibly for the second time.
    FromOutside {
        bee: u64,
        lane: usize,
        seq: u64,
        count: u32,
        floor: u64,
    },
    /// A bee consumes messages of an outside lane without effect, possibly before the log contains the bee.
    Consumed {
        bee: u64,
        lane: usize,
        seq: u64,
        count: u32,
        floor: u64,
    },
    /// A stateless handler consumes a message, so no bee is involved.
    Admit {
        lane: usize,
        seq: u64,
        handler: u16,
    },
    Fuse {
        from: u64,
        into: u64,
    },
    Release {
        bee: u64,
    },
    Retire {
        lane: usize,
    },
    BeginSweep {
        bee: u64,
    },
    Expand {
        cells: Vec<u64>,
        ends: bool,
    },
    Visit {
        bee: u64,
        cells: Vec<u64>,
    },
    /// A bee consumes messages of a bee of another log, possibly for the second time.
    FromAnotherLog {
        bee: u64,
        lane: usize,
        seq: u64,
        floor: u64,
    },
    /// An app of another log has handled the oldest messages in the outbox and an open sweep.
    Acked {
        count: usize,
    },
    /// Applies an entry that was executed on another state.
    Stale {
        bee: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (bee, lane, cells) = (0..BEES, 0..2usize, prop::collection::vec(0..6u64, 0..4));
    prop_oneof![
        6 => (bee.clone(), 0..3usize, 0..3usize).prop_map(|(bee, emits, consumes)| Step::Work { bee, emits, consumes }),
        4 => (bee.clone(), lane.clone(), 0..20u64, 1..4u32, 0..10u64)
            .prop_map(|(bee, lane, seq, count, floor)| Step::FromOutside { bee, lane, seq, count, floor }),
        3 => (bee.clone(), lane.clone(), 0..20u64, 1..4u32, 0..10u64)
            .prop_map(|(bee, lane, seq, count, floor)| Step::Consumed { bee, lane, seq, count, floor }),
        2 => (lane.clone(), 0..20u64, 0..2u16).prop_map(|(lane, seq, handler)| Step::Admit { lane, seq, handler }),
        2 => (bee.clone(), bee.clone()).prop_map(|(from, into)| Step::Fuse { from, into }),
        1 => bee.clone().prop_map(|bee| Step::Release { bee }),
        1 => lane.prop_map(|lane| Step::Retire { lane }),
        1 => bee.clone().prop_map(|bee| Step::BeginSweep { bee }),
        2 => (cells.clone(), any::<bool>()).prop_map(|(cells, ends)| Step::Expand { cells, ends }),
        2 => (bee.clone(), cells).prop_map(|(bee, cells)| Step::Visit { bee, cells }),
        3 => (bee.clone(), 0..2usize, 0..20u64, 0..10u64)
            .prop_map(|(bee, lane, seq, floor)| Step::FromAnotherLog { bee, lane, seq, floor }),
        1 => (0..4usize).prop_map(|count| Step::Acked { count }),
        1 => bee.prop_map(|bee| Step::Stale { bee }),
    ]
}

/// One bee of the model.
#[derive(Default)]
struct Bee {
    cells: BTreeSet<CellId>,
    /// All changes of keys to values, oldest first.
    ops: Vec<(u8, Option<u8>)>,
    seen: HashSet<(LaneId, Seq)>,
    floors: BTreeMap<LaneId, Seq>,
    /// All bees that have merged into it, directly or through other bees.
    merged: BTreeSet<BeeId>,
}

impl Bee {
    fn has_seen(&self, lane: LaneId, seq: Seq) -> bool {
        self.floors.get(&lane).is_some_and(|floor| seq < *floor) || self.seen.contains(&(lane, seq))
    }
}

/// The naive model.
#[derive(Default)]
struct Model {
    bees: BTreeMap<BeeId, Bee>,
    /// All emitted messages, oldest first, each with whether it has been handled.
    emitted: Vec<(MessageId, bool)>,
    /// The sweeps, each with the cells that it has reached and not visited, and whether it has reached all cells.
    sweeps: Vec<(MessageId, BTreeSet<CellId>, bool)>,
    without_bee: HashSet<(LaneId, Seq, HandlerId)>,
    floors: BTreeMap<LaneId, Seq>,
}

impl Model {
    fn open(&self) -> Vec<MessageId> {
        self.emitted.iter().filter(|(_, handled)| !handled).map(|(id, _)| *id).collect()
    }

    fn open_sweeps(&self) -> Vec<MessageId> {
        let is_open = |(_, open, all): &&(MessageId, BTreeSet<CellId>, bool)| !open.is_empty() || !all;
        self.sweeps.iter().filter(is_open).map(|(id, ..)| *id).collect()
    }
}

/// Applies each step to both the state and the model.
#[derive(Default)]
struct Run {
    state: LogState,
    model: Model,
    entries: Vec<Entry>,
    numbers: BTreeMap<u64, u64>,
}

fn emit_of(id: MessageId, is_sweep: bool) -> Emit {
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

impl Run {
    fn apply(&mut self, record: Record) {
        let (number, after) = (EntryNumber(self.state.last.0 + 2), self.state.last);
        let entry = Entry { number, after, record };
        partial::apply(&mut self.state, &entry);
        assert!(!self.state.apply(&entry), "a second time it is ignored");
        self.entries.push(entry);
    }

    fn next_id(&mut self, bee: u64) -> MessageId {
        let next = self.numbers.entry(bee).or_default();
        *next += 1;
        let lane = LaneId::of_bee(APP, BeeId(bee));
        MessageId { lane, seq: Seq(*next), part: Part::WHOLE, app: RECEIVER }
    }

    fn work(&self, bee: u64) -> Work {
        let next_seq = Seq(self.numbers.get(&bee).copied().unwrap_or(0) + 1);
        Work {
            app: APP,
            bee: BeeId(bee),
            cells: vec![CellId(bee)],
            inputs: Default::default(),
            visits: Vec::new(),
            redo: Redo::default(),
            emits: Emits::default(),
            next_seq,
            now: Time::ZERO,
        }
    }

    /// Returns a bee of the model, and adds the cell that each record of this bee names. Returns `None` if the cell
    /// belongs to another bee, with which this bee has merged.
    fn bee(&mut self, bee: u64) -> Option<&mut Bee> {
        let owned =
            self.model.bees.iter().any(|(id, other)| id.0 != bee && other.cells.contains(&CellId(bee)));
        if owned {
            return None;
        }
        let found = self.model.bees.entry(BeeId(bee)).or_default();
        found.cells.insert(CellId(bee));
        Some(found)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Work { bee, emits, consumes } => {
                if self.bee(bee).is_none() {
                    return;
                }
                let ids: Vec<_> = (0..emits).map(|_| self.next_id(bee)).collect();
                let value = (!self.entries.len().is_multiple_of(3)).then_some(self.entries.len() as u8);
                let (key, encoded) = (bee as u8, value.map(|value| [value]));
                let value_of = encoded.as_ref().map(<[u8; 1]>::as_slice);
                let mut work = self.work(bee);
                work.emits = ids.iter().map(|id| emit_of(*id, false)).collect();
                work.redo.push(Op { dict: 0, key: &[key], row: None, value: value_of });
                self.bee(bee).unwrap().ops.push((key, value));
                self.model.emitted.extend(ids.into_iter().map(|id| (id, false)));
                // Two bees that ran between two entries share one record.
                let mut turn = vec![Arc::new(work)];
                if emits != 2 {
                    self.apply(Record::Turn(std::mem::take(&mut turn)))
                }

                // The receiver is the only bee of another app.
                let taken: Vec<_> = self.model.open().into_iter().take(consumes).collect();
                let of = |id: &MessageId| Input {
                    lane: id.lane,
                    floor: None,
                    seq: id.seq,
                    count: 1,
                    part: id.part,
                };
                let (inputs, receiver) = (taken.iter().map(of).collect(), BeeId(100));
                self.apply(if emits == 1 {
                    // The messages had no effect.
                    let visits = Vec::new();
                    Record::Consumed(vec![Consumed { app: RECEIVER, bee: receiver, inputs, visits }])
                } else {
                    let receiver = Work { app: RECEIVER, bee: receiver, cells: vec![], ..self.work(bee) };
                    turn.push(Arc::new(Work { inputs, ..receiver }));
                    Record::Turn(turn)
                });
                for (id, handled) in &mut self.model.emitted {
                    *handled |= taken.contains(id)
                }
            }
            Step::FromOutside { bee, lane, seq, count, floor } => {
                let (lane, floor) = (OUTSIDE[lane], Seq(floor));
                let Some(of) = self.bee(bee) else { return };
                of.seen.extend((0..count as u64).map(|index| (lane, Seq(seq + index))));
                let known = of.floors.entry(lane).or_default();
                *known = floor.max(*known);
                if lane.is_lasting() {
                    let known = self.model.floors.entry(lane).or_default();
                    *known = floor.max(*known)
                }
                let input = Input { lane, floor: Some(floor), seq: Seq(seq), count, part: Part::WHOLE };
                self.apply(Record::Turn(vec![Arc::new(Work {
                    inputs: [input].into_iter().collect(),
                    ..self.work(bee)
                })]))
            }
            Step::Consumed { bee, lane, seq, count, floor } => {
                let (bee, lane, floor) = (BeeId(bee), OUTSIDE[lane], Seq(floor));
                let input = Input { lane, floor: Some(floor), seq: Seq(seq), count, part: Part::WHOLE };
                // The log cannot record handled messages for a bee that it does not contain.
                if let Some(of) = self.model.bees.get_mut(&bee) {
                    of.seen.extend((0..count as u64).map(|index| (lane, Seq(seq + index))));
                    let known = of.floors.entry(lane).or_default();
                    *known = floor.max(*known)
                }
                if lane.is_lasting() {
                    let known = self.model.floors.entry(lane).or_default();
                    *known = floor.max(*known)
                }
                let one =
                    Consumed { app: APP, bee, inputs: [input].into_iter().collect(), visits: Vec::new() };
                self.apply(Record::Consumed(vec![one]))
            }
            Step::FromAnotherLog { bee, lane, seq, floor } => {
                let (lane, seq, floor) = (OF_ANOTHER_LOG[lane], Seq(seq), Seq(floor));
                let Some(of) = self.bee(bee) else { return };
                of.seen.insert((lane, seq));
                let known = of.floors.entry(lane).or_default();
                *known = floor.max(*known);
                let input = Input { lane, floor: Some(floor), seq, count: 1, part: Part::WHOLE };
                self.apply(Record::Turn(vec![Arc::new(Work {
                    inputs: [input].into_iter().collect(),
                    ..self.work(bee)
                })]))
            }
            Step::Acked { count } => {
                let taken: Vec<_> = self.model.open().into_iter().take(count).collect();
                let sweep: Vec<_> = self.model.open_sweeps().into_iter().take(count / 3).collect();
                for (id, handled) in &mut self.model.emitted {
                    *handled |= taken.contains(id)
                }
                self.model.sweeps.retain(|(id, ..)| !sweep.contains(id));
                let of = |id: &MessageId| Acked {
                    app: id.app,
                    lane: id.lane,
                    seq: id.seq,
                    count: 1,
                    part: id.part,
                };
                let mut runs: Vec<Acked> = Vec::new();
                for acked in taken.iter().chain(&sweep).map(of) {
                    if !runs.last_mut().is_some_and(|last| last.extend(&acked)) {
                        runs.push(acked)
                    }
                }
                self.apply(Record::Acked(runs))
            }
            Step::Admit { lane, seq, handler } => {
                let (lane, handler) = (OUTSIDE[lane], HandlerId(handler));
                let id = MessageId { part: Part(seq + 1), ..self.next_id(50) };
                if lane.is_lasting() {
                    self.model.without_bee.insert((lane, Seq(seq), handler));
                }
                self.model.emitted.push((id, false));
                let input = Input { lane, floor: Some(Seq(0)), seq: Seq(seq), count: 1, part: Part::WHOLE };
                self.apply(Record::Admit { app: APP, handler, input, emits: Emits(vec![emit_of(id, false)]) })
            }
            Step::Fuse { from, into } => {
                let (from, into) = (BeeId(from), BeeId(into));
                if from == into || !self.model.bees.contains_key(&into) {
                    return;
                }
                let Some(gone) = self.model.bees.remove(&from) else {
                    // A repeated or late record changes nothing, not even the inherited lanes.
                    return self.apply(Record::Fuse { app: APP, from, into, view: 0 });
                };

                let target = self.model.bees.get_mut(&into).unwrap();
                target.cells.extend(gone.cells);
                target.ops.extend(gone.ops);
                target.seen.extend(gone.seen);
                for (lane, floor) in gone.floors {
                    let known = target.floors.entry(lane).or_default();
                    *known = floor.max(*known)
                }
                target.merged.extend(gone.merged);
                target.merged.insert(from);

                self.apply(Record::Fuse { app: APP, from, into, view: 0 });
                self.check_heirs(into)
            }
            Step::Release { bee } => {
                self.model.bees.remove(&BeeId(bee));
                let floors = vec![(OUTSIDE[1], Seq(7))];
                let known = self.model.floors.entry(OUTSIDE[1]).or_default();
                *known = Seq(7).max(*known);
                self.apply(Record::Release { app: APP, bee: BeeId(bee), floors, view: 0 })
            }
            Step::Retire { lane } => {
                let lane = OUTSIDE[lane];
                for bee in self.model.bees.values_mut() {
                    bee.seen.retain(|(other, _)| *other != lane);
                    bee.floors.remove(&lane);
                }
                self.model.floors.remove(&lane);
                self.model.without_bee.retain(|(other, ..)| *other != lane);
                self.apply(Record::Retire { lanes: vec![lane], view: 0 })
            }
            Step::BeginSweep { bee } => {
                if self.bee(bee).is_none() {
                    return;
                }
                let id = self.next_id(bee);
                self.model.sweeps.push((id, BTreeSet::new(), false));
                self.apply(Record::Turn(vec![Arc::new(Work {
                    emits: Emits(vec![emit_of(id, true)]),
                    ..self.work(bee)
                })]))
            }
            Step::Expand { cells, ends } => {
                let Some(sweep) = self.model.open_sweeps().first().copied() else { return };
                let cells: Vec<_> = cells.into_iter().map(CellId).collect();
                let (_, open, all) = self.model.sweeps.iter_mut().find(|(id, ..)| *id == sweep).unwrap();
                open.extend(cells.iter().copied());
                *all = ends;
                self.apply(Record::Expand { sweep, cells, gone: vec![], next: (!ends).then_some(CellId(9)) })
            }
            Step::Visit { bee, cells } => {
                let Some(sweep) = self.model.open_sweeps().first().copied() else { return };
                let is_consumed = self.entries.len().is_multiple_of(2);
                if !is_consumed && self.bee(bee).is_none() {
                    return;
                }
                let cells: Vec<_> = cells.into_iter().map(CellId).collect();
                let (_, open, _) = self.model.sweeps.iter_mut().find(|(id, ..)| *id == sweep).unwrap();
                open.retain(|cell| !cells.contains(cell));
                let visits = vec![Visited { sweep, cells }];
                self.apply(if is_consumed {
                    let (bee, inputs) = (BeeId(bee), Vec::new());
                    Record::Consumed(vec![Consumed { app: APP, bee, inputs: inputs.into(), visits }])
                } else {
                    Record::Turn(vec![Arc::new(Work { visits, ..self.work(bee) })])
                })
            }
            Step::Stale { bee } => {
                let before = self.state.clone();
                let (number, after) = (EntryNumber(u64::MAX), EntryNumber(self.state.last.0 + 1));
                let record = Record::Release { app: APP, bee: BeeId(bee), floors: vec![], view: 0 };
                assert!(!self.state.apply(&Entry { number, after, record }));
                assert_eq!(self.state, before)
            }
        }
    }

    /// After a merge, a bee has inherited only lanes of bees that have merged into it and that still have unhandled
    /// messages.
    fn check_heirs(&self, into: BeeId) {
        let Some(bee) = self.model.bees.get(&into) else { return };
        let open: HashSet<LaneId> =
            self.model.open().into_iter().chain(self.model.open_sweeps()).map(|id| id.lane).collect();
        let want: BTreeSet<LaneId> = bee
            .merged
            .iter()
            .map(|bee| LaneId::of_bee(APP, *bee))
            .filter(|lane| open.contains(lane))
            .collect();
        let heirs = &self.state.bees[&(APP, into)].heir_of;
        // A bee that was released and created again has a lane with the same id. The model has forgotten which bees
        // merged into the earlier bee.
        assert!(heirs.is_subset(&want), "{heirs:?} {want:?}");
    }

    fn check(&self) {
        let (state, model) = (&self.state, &self.model);
        assert!(state.has_one_owner_per_cell());
        assert_eq!(state.outbox.keys().copied().collect::<BTreeSet<_>>(), model.open().into_iter().collect());
        assert_eq!(
            state.sweeps.keys().copied().collect::<BTreeSet<_>>(),
            model.open_sweeps().into_iter().collect()
        );
        let orders: Vec<_> = model.open().iter().map(|id| state.outbox[id].order).collect();
        assert!(orders.is_sorted_by(|a, b| a < b), "the outbox is in the order of emission: {orders:?}");

        let newest = self.entries.iter().filter_map(|entry| match &entry.record {
            Record::Turn(works) => works.iter().filter(|work| work.app == APP).map(|work| work.bee).max(),
            _ => None,
        });
        assert_eq!(state.newest.get(&APP).copied(), newest.max());
        let bees: Vec<_> = state.bees.keys().filter(|(app, _)| *app == APP).map(|(_, bee)| *bee).collect();
        assert_eq!(bees, model.bees.keys().copied().collect::<Vec<_>>());
        for (id, bee) in &model.bees {
            let image = &state.bees[&(APP, *id)];
            assert!(image.cells.iter().eq(&bee.cells));
            for key in 0..BEES as u8 {
                // The last change of each key counts.
                let want = bee
                    .ops
                    .iter()
                    .rev()
                    .find(|(of, _)| *of == key)
                    .and_then(|(_, value)| *value)
                    .map(|v| vec![v]);
                let is = image
                    .state
                    .images()
                    .find(|image| image.key == [key])
                    .map(|image| image.rows[0].1.clone());
                assert_eq!(is, want);
            }
            for (lane, seq) in OUTSIDE
                .into_iter()
                .chain(OF_ANOTHER_LOG)
                .flat_map(|lane| (0..25).map(move |seq| (lane, Seq(seq))))
            {
                assert_eq!(
                    image.seen.contains(lane, seq, Part::WHOLE),
                    bee.has_seen(lane, seq),
                    "{id} {lane:?} {seq:?}"
                );
            }
        }

        let lasting = OUTSIDE[1];
        let floor = model.floors.get(&lasting).copied().unwrap_or_default();
        assert_eq!(state.seen.floor(lasting), floor);
        for (seq, handler) in
            (0..25).flat_map(|seq| (0..2).map(move |handler| (Seq(seq), HandlerId(handler))))
        {
            let part = Part::WHOLE.derived(APP, handler);
            let want = seq < floor || model.without_bee.contains(&(lasting, seq, handler));
            assert_eq!(state.seen.contains(lasting, seq, part), want);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_state_is_that_of_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let mut run = Run::default();
        for step in steps {
            run.step(step);
            run.check();
        }

        // A follower that reads the same bytes reaches the same state.
        let log: Vec<Vec<u8>> = run.entries.iter().map(Entry::encode).collect();
        let replayed = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        prop_assert_eq!(replayed, run.state);
    }
}
