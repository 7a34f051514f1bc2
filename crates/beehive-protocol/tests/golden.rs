//! A log may be older than the program that reads it. These tests compare the encoding of every kind of record with the
//! bytes in a checked-in file.
//!
//! To change the format on purpose, run the test with `BEEHIVE_WRITE_GOLDEN=1`, and review the diff of the file.

use beehive_protocol::codec::{decode_many, encode_many};
use beehive_protocol::{
    Acked, Address, AppId, AppShapes, BeeId, BeeImage, CellId, CellImage, ColonyId, Consumed, CrashMarker,
    Decision, DedupTable, Emit, Emits, Entry, EntryNumber, Epoch, FewSet, HandlerId, HiveId, Incarnation,
    Input, LaneId, LogPlace, LogState, LoggedSettings, MessageId, MessageTypeId, Op, Part, Payload, Proposal,
    Record, Redo, RegistryState, SWEEP_PARTS, Seq, Shape, Shapes, SnapshotLoader, StagePart, Staged, Suspect,
    Sweep, Time, Untold, Visited, Waiting, Work, sweep_order,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write};
use std::sync::Arc;

const APP: AppId = AppId(0x0102);

fn id(seq: u64) -> MessageId {
    MessageId { lane: LaneId::of_bee(APP, BeeId(7)), seq: Seq(seq), part: Part::WHOLE, app: AppId(3) }
}

fn emit() -> Emit {
    Emit {
        id: id(5),
        message_type: MessageTypeId::of("crate::Name", None),
        payload: Payload::from(&[1, 2, 3][..]),
        at: Some(Time::from_nanoseconds(9)),
        is_sweep: false,
        position: Some(1),
        origin: HiveId(4),
        sender: Address::App(APP),
        hops: 2,
        chain: 11,
        chance: 12,
    }
}

fn input() -> Input {
    Input { lane: LaneId::lasting(6), floor: Some(Seq(2)), seq: Seq(3), count: 4, part: Part::WHOLE }
}

fn acked() -> Acked {
    Acked { app: APP, lane: LaneId::of_bee(APP, BeeId(7)), seq: Seq(3), count: 4, part: Part::WHOLE }
}

fn op(value: Option<&[u8]>) -> Op<'_> {
    Op { dict: 1, key: &[0xaa], row: Some(&[0xbb, 0xcc]), value }
}

fn image() -> CellImage {
    CellImage { dict: 1, key: vec![0xaa], rows: vec![(vec![0xbb, 0xcc], vec![1])] }
}

fn every_shape() -> [Shape; 12] {
    [
        Shape::Plain("u64".into()),
        Shape::Unit,
        Shape::Maybe(Box::new(Shape::Unit)),
        Shape::Sequence(Box::new(Shape::Unit)),
        Shape::Map(Box::new(Shape::Plain("str".into())), Box::new(Shape::Unit)),
        Shape::Array(Box::new(Shape::Unit), 6),
        Shape::Tuple(vec![Shape::Unit]),
        Shape::Struct(vec![("field".into(), Shape::Unit)]),
        Shape::Enum(vec![("Variant".into(), Shape::Unit)]),
        Shape::Again("Type".into()),
        Shape::Opaque,
        Shape::Any,
    ]
}

fn shapes() -> Shapes {
    let parts = every_shape().into_iter().filter(|shape| !matches!(shape, Shape::Tuple(_)));
    let app = AppShapes {
        name: "bank".into(),
        dictionaries: vec![("accounts".into(), Shape::Tuple(parts.collect()))],
    };
    let names = BTreeMap::from([(MessageTypeId::of("crate::Name", None), "crate::Name".into())]);
    Shapes { apps: vec![app], messages: BTreeMap::from([("crate::Name".into(), Shape::Unit)]), names }
}

fn settings() -> LoggedSettings {
    LoggedSettings { version: 3, table: "a = 1".into() }
}

fn work() -> Work {
    Work {
        app: APP,
        bee: BeeId(7),
        cells: vec![CellId(1)],
        inputs: [input()].into_iter().collect(),
        visits: vec![Visited { sweep: id(8), cells: vec![CellId(2)] }],
        redo: [op(Some(&[1])), op(None)].into_iter().collect(),
        emits: Emits(vec![emit()]),
        next_seq: Seq(6),
        now: Time::from_nanoseconds(13),
    }
}

fn consumed() -> Consumed {
    let visits = vec![Visited { sweep: id(8), cells: vec![CellId(2)] }];
    Consumed { app: APP, bee: BeeId(7), inputs: [input()].into_iter().collect(), visits }
}

fn visited() -> Visited {
    Visited { sweep: id(8), cells: vec![CellId(2)] }
}

fn untold() -> Untold {
    Untold::Split { bee: BeeId(7), cells: vec![CellId(1)], new: BeeId(9) }
}

fn stage(part: StagePart) -> Record {
    Record::Stage { app: APP, bee: BeeId(7), epoch: Epoch(1), part, at: 1, of: 3, view: 4 }
}

/// A bee without the contents of its cells.
fn moving() -> BeeImage {
    BeeImage { state: Default::default(), ..*state().bees[&(APP, BeeId(7))].clone() }
}

fn records() -> [(&'static str, Record); 24] {
    let one = Input { count: 1, ..input() };
    let admit = Record::Admit { app: APP, handler: HandlerId(9), input: one, emits: Emits(vec![emit()]) };
    let expand =
        Record::Expand { sweep: id(8), cells: vec![CellId(1)], gone: vec![CellId(2)], next: Some(CellId(3)) };
    let release =
        Record::Release { app: APP, bee: BeeId(7), floors: vec![(LaneId::lasting(6), Seq(3))], view: 4 };
    let freeze =
        Record::Freeze { app: APP, bee: BeeId(7), lanes: vec![id(5).lane], to: ColonyId(2), view: 4 };
    let split = Record::Split {
        app: APP,
        bee: BeeId(7),
        new: BeeId(9),
        cells: vec![CellId(1)],
        keys: vec![(0, vec![1])],
        view: 4,
    };
    [
        ("Record::Turn", Record::Turn(vec![Arc::new(work()), Arc::new(Work { bee: BeeId(8), ..work() })])),
        ("Record::Admit", admit),
        ("Record::Expand", expand),
        ("Record::Fuse", Record::Fuse { app: APP, from: BeeId(7), into: BeeId(8), view: 4 }),
        ("Record::Release", release),
        ("Record::Retire", Record::Retire { lanes: vec![LaneId::passing(6)], view: 4 }),
        ("Record::Settings", Record::Settings { settings: vec![(APP, settings())] }),
        ("Record::Shapes", Record::Shapes(shapes())),
        ("Record::Consumed", Record::Consumed(vec![consumed()])),
        ("Record::Acked", Record::Acked(vec![acked()])),
        ("Record::Visited", Record::Visited(vec![visited()])),
        ("Record::Freeze", freeze),
        ("Record::Stage", stage(StagePart::Bee(Box::new(moving())))),
        ("Record::Adopt", Record::Adopt { app: APP, bee: BeeId(7), epoch: Epoch(1), view: 4 }),
        ("Record::Unstage", Record::Unstage { app: APP, bee: BeeId(7), view: 4 }),
        ("Record::Drop", Record::Drop { app: APP, bee: BeeId(7), view: 4 }),
        ("Record::Thaw", Record::Thaw { app: APP, bee: BeeId(7), epoch: Epoch(1), view: 4 }),
        ("Record::Mark", Record::Mark { marker: Some(marker()) }),
        ("Record::Create", Record::Create { app: APP, bee: BeeId(9), view: 4 }),
        ("Record::Split", split),
        ("Record::Told", Record::Told { what: untold(), view: 5 }),
        ("Record::Blank", Record::Blank),
        ("Record::Time", Record::Time(Time::from_nanoseconds(0x0304))),
        ("Record::Place", Record::Place(LogPlace { number: 1, of: 3 })),
    ]
}

fn stage_parts() -> [(&'static str, StagePart); 5] {
    [
        ("StagePart::Bee", StagePart::Bee(Box::new(moving()))),
        ("StagePart::Rows", StagePart::Rows(vec![image()])),
        ("StagePart::Outbox", StagePart::Outbox(Emits(vec![emit()]))),
        ("StagePart::Cells", StagePart::Cells(vec![CellId(1)])),
        ("StagePart::Seen", StagePart::Seen(moving().seen)),
    ]
}

fn state() -> LogState {
    let mut seen = DedupTable::default();
    seen.raise(LaneId::lasting(6), Seq(3));
    [5, 6, 9].into_iter().for_each(|seq| seen.insert(LaneId::lasting(6), Seq(seq), Part::WHOLE));
    seen.insert(LaneId::lasting(6), Seq(7), Part(1));

    let cells = FewSet::from_iter([CellId(1)]);
    let mut bee = Box::new(BeeImage { cells, seen: seen.clone(), ..BeeImage::default() });
    bee.state.apply(op(Some(&[1])));
    (bee.next_seq, bee.now) = (Seq(6), Time::from_nanoseconds(13));
    bee.heir_of = BTreeSet::from([LaneId::of_bee(APP, BeeId(8))]).into();
    bee.epoch = Epoch(2);

    let waiting = Waiting { order: 1, emit: emit() };
    let began_by = Some(MessageId { lane: LaneId::of_bee(APP, BeeId(8)), ..waiting.emit.id });
    let (next, open) = (Some(CellId(3)), BTreeSet::from([CellId(1)]));
    let sweep = Sweep { waiting: waiting.clone(), next, open, began_by };
    LogState {
        last: EntryNumber(14),
        bees: BTreeMap::from([((APP, BeeId(7)), bee.clone())]),
        staged: BTreeMap::from([(
            (APP, BeeId(9)),
            Staged { bee, outbox: Emits(vec![emit()]), parts: 3, of: 3 },
        )]),
        frozen: BTreeSet::from([LaneId::of_bee(APP, BeeId(8))]),
        outbox: BTreeMap::from([(id(5), waiting)]),
        sweeps: BTreeMap::from([(id(8), sweep)]),
        emitted: 2,
        seen,
        newest: BTreeMap::from([(APP, BeeId(7))]),
        next_seqs: BTreeMap::from([(LaneId::of_app(APP), Seq(4))]),
        settings: BTreeMap::from([(APP, settings())]),
        shapes: shapes(),
        known: 4,
        untold: vec![untold()],
        marker: Some(marker()),
        now: Time::from_nanoseconds(10),
        place: None,
    }
}

fn claim(cells: &[u64], colony: u32) -> Proposal {
    let cells = cells.iter().map(|cell| CellId(*cell)).collect();
    Proposal::Claim { app: APP, cells, colony: ColonyId(colony) }
}

/// A registry in which everything occurs.
fn registry() -> RegistryState {
    let mut state = RegistryState::default();
    let found = |after, is_replicated| Proposal::Found {
        after: ColonyId(after),
        members: vec![HiveId(4), HiveId(5)],
        is_replicated,
    };
    let join = |hive| Proposal::Join { hive: HiveId(hive), after: Incarnation(0) };
    let all = [
        join(4),
        join(5),
        Proposal::HiveDead { hive: HiveId(5), incarnation: Incarnation(1) },
        found(0, false),
        found(1, true),
        Proposal::Members { colony: ColonyId(1), version: 1, members: vec![HiveId(4)], is_replicated: false },
        Proposal::Leader { colony: ColonyId(1), term: 3, hive: HiveId(4) },
        Proposal::App { app: APP, version: 1, replication: 3, shapes: shapes().apps.remove(0) },
        Proposal::Settings { app: APP, settings: LoggedSettings { version: 1, table: "a = 1".into() } },
        claim(&[0x11, 0x12], 1),
        claim(&[0x13], 2),
        claim(&[0x14, 0x15], 1),
        claim(&[0x16], 1),
        Proposal::Reserve { colony: ColonyId(1), after: BeeId(0), count: 4 },
        Proposal::Split { bee: BeeId(5), cells: vec![CellId(0x15)], new: BeeId(7) },
        Proposal::Relane { bee: BeeId(5), number: BeeId(8) },
        claim(&[0x14, 0x16], 1),
        Proposal::Fused { from: BeeId(6), into: BeeId(5) },
        Proposal::Retire { lane: LaneId::of_bee(APP, BeeId(5)) },
        claim(&[0x11, 0x13], 1),
        Proposal::Aim { bee: BeeId(7), epoch: Epoch(0), colony: ColonyId(2) },
        Proposal::Commit { bee: BeeId(5), epoch: Epoch(0), to: ColonyId(2) },
        found(2, false),
        Proposal::ColonyDead { colony: ColonyId(3) },
        claim(&[0x17], 1),
        Proposal::Release { bee: BeeId(11) },
    ];
    for proposal in &all {
        let decision = state.apply(proposal);
        assert!(!matches!(decision, Decision::Void { .. }), "{proposal:?} has no effect");
    }
    state
}

fn proposals() -> [(&'static str, Proposal); 17] {
    let members = vec![HiveId(4), HiveId(5)];
    let settings = settings();
    let shapes = shapes().apps.remove(0);
    [
        ("Proposal::Claim", claim(&[1, 2], 9)),
        ("Proposal::Aim", Proposal::Aim { bee: BeeId(1), epoch: Epoch(2), colony: ColonyId(9) }),
        ("Proposal::Commit", Proposal::Commit { bee: BeeId(1), epoch: Epoch(2), to: ColonyId(9) }),
        ("Proposal::Fused", Proposal::Fused { from: BeeId(1), into: BeeId(2) }),
        ("Proposal::Reserve", Proposal::Reserve { colony: ColonyId(9), after: BeeId(1), count: 8 }),
        ("Proposal::Split", Proposal::Split { bee: BeeId(1), cells: vec![CellId(1)], new: BeeId(2) }),
        ("Proposal::Release", Proposal::Release { bee: BeeId(1) }),
        ("Proposal::Relane", Proposal::Relane { bee: BeeId(1), number: BeeId(2) }),
        ("Proposal::Retire", Proposal::Retire { lane: LaneId::of_bee(AppId(0), BeeId(1)) }),
        ("Proposal::Join", Proposal::Join { hive: HiveId(4), after: Incarnation(3) }),
        ("Proposal::HiveDead", Proposal::HiveDead { hive: HiveId(4), incarnation: Incarnation(3) }),
        (
            "Proposal::Found",
            Proposal::Found { after: ColonyId(9), members: members.clone(), is_replicated: true },
        ),
        (
            "Proposal::Members",
            Proposal::Members { colony: ColonyId(9), version: 7, members, is_replicated: true },
        ),
        ("Proposal::Leader", Proposal::Leader { colony: ColonyId(9), term: 6, hive: HiveId(4) }),
        ("Proposal::ColonyDead", Proposal::ColonyDead { colony: ColonyId(9) }),
        ("Proposal::App", Proposal::App { app: APP, version: 7, replication: 3, shapes }),
        ("Proposal::Settings", Proposal::Settings { app: APP, settings }),
    ]
}

fn decisions() -> [(&'static str, Decision); 6] {
    let (root, colony, index) = (BeeId(1), ColonyId(9), 3);
    let merging = vec![BeeId(2)];
    let owner = Decision::Owner { root, colony, epoch: Epoch(2), created: true, merging, index };
    let lane = LaneId::passing(8);
    [
        ("Decision::Owner", owner),
        ("Decision::Done", Decision::Done { index }),
        ("Decision::Void", Decision::Void { index }),
        ("Decision::Joined", Decision::Joined { incarnation: Incarnation(4), lane, index }),
        ("Decision::Founded", Decision::Founded { colony, index }),
        ("Decision::Reserved", Decision::Reserved { first: BeeId(1), count: 8, index }),
    ]
}

fn addresses() -> [(&'static str, Address); 3] {
    [
        ("Address::Io", Address::Io(HiveId(4), 5)),
        ("Address::App", Address::App(APP)),
        ("Address::Outside", Address::Outside),
    ]
}

fn marker() -> CrashMarker {
    let suspect = |cell| Suspect { id: id(5), cell };
    CrashMarker {
        running: vec![suspect(None)],
        suspected: vec![suspect(Some(CellId(3)))],
        accused: vec![suspect(Some(CellId(2)))],
        set_aside: vec![suspect(Some(CellId(1)))],
        number: 6,
    }
}

/// Adds a line with the name and the encoded bytes of a value. Checks that the bytes decode to the value.
fn line<T: Serialize + DeserializeOwned + PartialEq + Debug>(out: &mut String, name: &str, value: &T) {
    let bytes = encode_many(value);
    assert_eq!(decode_many::<T>("a golden value", &bytes).as_ref(), Ok(value), "{name}");
    hex_line(out, name, &bytes)
}

/// Adds lines with the chunks of a snapshot of a state. Checks that the chunks make up the state.
fn chunk_lines(out: &mut String, name: &str, state: &LogState) {
    let mut loader = SnapshotLoader::default();
    for (number, chunk) in state.chunks(200).enumerate() {
        loader.add(&chunk).unwrap();
        hex_line(out, &format!("{name}{number}"), &chunk)
    }
    assert_eq!(loader.finish().as_ref(), Ok(state));
}

fn hex_line(out: &mut String, name: &str, bytes: &[u8]) {
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let _ = writeln!(out, "{name} {hex}");
}

/// Checks that `values` are all variants of an enumeration, in their order. The encoding of a variant begins with its
/// number. Bytes that begin with the number after the last variant must not decode.
fn are_all_variants<T: Serialize + DeserializeOwned + Debug>(values: &[T]) {
    for (number, value) in (0u8..).zip(values) {
        assert!(encode_many(value).starts_with(&[number]), "{value:?} is not variant {number}");
    }

    let next = u8::try_from(values.len()).expect("fewer than 251 variants");
    let error = decode_many::<T>("a variant", &[next]).unwrap_err();
    let name = std::any::type_name::<T>();
    assert!(error.why.contains("variant"), "variant {next} of {name} has no golden value: {error:?}");
}

#[test]
fn every_variant_has_a_golden_value() {
    are_all_variants(&records().map(|(_, record)| record));
    are_all_variants(&proposals().map(|(_, proposal)| proposal));
    are_all_variants(&decisions().map(|(_, decision)| decision));
    are_all_variants(&stage_parts().map(|(_, part)| part));
    are_all_variants(&addresses().map(|(_, address)| address));
    are_all_variants(&every_shape());
}

/// The order in which a sweep visits cells is part of the format, because a log contains the cell at which a sweep
/// continues. Cells are ordered by the lowest 6 of their highest 16 bits, and then by the whole number.
#[test]
fn the_order_of_a_sweep_is_as_it_was() {
    assert_eq!(SWEEP_PARTS, 64);
    let orders = [0x0001_0000_0000_0009, 0xffbf_ffff_ffff_ffff, 0x0040_0000_0000_0000].map(CellId);
    assert_eq!(orders.map(|cell| sweep_order(cell).0), [1, 63, 0]);
    assert_eq!(orders.map(|cell| sweep_order(cell).1), orders);
}

#[test]
fn every_encoding_is_as_it_was() {
    let mut lines = String::new();
    for (name, record) in records() {
        line(&mut lines, name, &record);
    }
    stage_parts().iter().for_each(|(name, part)| line(&mut lines, name, part));
    let record = Record::Fuse { app: APP, from: BeeId(7), into: BeeId(8), view: 4 };
    line(&mut lines, "Entry", &Entry { number: EntryNumber(2), after: EntryNumber(1), record });
    line(&mut lines, "CrashMarker", &marker());
    line(&mut lines, "CellImage", &image());
    line(&mut lines, "LogState", &state());
    let mut state = state();
    state.sweeps.values_mut().for_each(|sweep| sweep.waiting.emit.id = id(8));
    chunk_lines(&mut lines, "Chunk", &state);
    let place = Some(LogPlace { number: 1, of: 3 });
    chunk_lines(&mut lines, "ChunkOfPlaced", &LogState { place, ..LogState::default() });
    proposals().iter().for_each(|(name, proposal)| line(&mut lines, name, proposal));
    decisions().iter().for_each(|(name, decision)| line(&mut lines, name, decision));
    line(&mut lines, "RegistryState", &registry());
    addresses().iter().for_each(|(name, address)| line(&mut lines, name, address));

    if std::env::var_os("BEEHIVE_WRITE_GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden_bytes.txt"), &lines).unwrap();
    }
    let golden = include_str!("golden_bytes.txt");
    for (now, before) in lines.lines().zip(golden.lines()) {
        assert_eq!(now, before, "the format has changed");
    }
    assert_eq!(lines.lines().count(), golden.lines().count(), "values were added or removed");
}

fn any_id() -> impl Strategy<Value = MessageId> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u16>()).prop_map(|(lane, seq, part, app)| MessageId {
        lane: LaneId(lane),
        seq: Seq(seq),
        part: Part(part),
        app: AppId(app),
    })
}

fn any_cells() -> impl Strategy<Value = Vec<CellId>> {
    prop::collection::vec(any::<u64>().prop_map(CellId), 0..4)
}

fn any_emit() -> impl Strategy<Value = Emit> {
    let numbers = (any::<u32>(), any::<u16>(), any::<u64>(), any::<u64>());
    let sender = prop_oneof![
        any::<u16>().prop_map(|app| Address::App(AppId(app))),
        (any::<u32>(), any::<u64>()).prop_map(|(hive, io)| Address::Io(HiveId(hive), io)),
        Just(Address::Outside),
    ];
    let rest = (any::<Option<u64>>(), any::<bool>(), any::<Option<u16>>(), sender, numbers);
    (any_id(), any::<u32>(), any::<Vec<u8>>(), rest).prop_map(|(id, number, bytes, rest)| {
        let (message_type, payload) = (MessageTypeId(number), Payload::from(&bytes[..]));
        let (at, is_sweep, position, sender, (hive, hops, chain, chance)) = rest;
        let (at, origin) = (at.map(Time::from_nanoseconds), HiveId(hive));
        Emit { id, message_type, payload, at, is_sweep, position, origin, sender, hops, chain, chance }
    })
}

fn any_emits() -> impl Strategy<Value = Emits> {
    prop::collection::vec(any_emit(), 0..3).prop_map(Emits)
}

fn any_input() -> impl Strategy<Value = Input> {
    let id = (any_id(), any::<bool>());
    let id =
        id.prop_map(|(id, is_whole)| MessageId { part: if is_whole { Part::WHOLE } else { id.part }, ..id });
    (id, any::<Option<u64>>(), any::<u32>()).prop_map(|(id, floor, count)| Input {
        lane: id.lane,
        floor: floor.map(Seq),
        seq: id.seq,
        // a part is a part of one message
        count: if id.part.is_whole() { count } else { 1 },
        part: id.part,
    })
}

fn any_redo() -> impl Strategy<Value = Redo> {
    let op = (any::<u32>(), any::<Vec<u8>>(), any::<Option<Vec<u8>>>(), any::<Option<Vec<u8>>>());
    prop::collection::vec(op, 0..4).prop_map(|ops| {
        let mut redo = Redo::default();
        for (dict, key, row, value) in &ops {
            redo.push(Op { dict: *dict, key, row: row.as_deref(), value: value.as_deref() })
        }
        redo
    })
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        "[a-z0-9]{1,4}".prop_map(Shape::Plain),
        Just(Shape::Unit),
        Just(Shape::Opaque),
        Just(Shape::Any),
        "[a-z]{1,4}".prop_map(Shape::Again)
    ];
    leaf.prop_recursive(4, 20, 4, |shape| {
        let named = prop::collection::vec(("[a-z]{1,4}", shape.clone()), 0..4);
        prop_oneof![
            shape.clone().prop_map(|of| Shape::Maybe(Box::new(of))),
            shape.clone().prop_map(|of| Shape::Sequence(Box::new(of))),
            (shape.clone(), shape.clone())
                .prop_map(|(key, value)| Shape::Map(Box::new(key), Box::new(value))),
            (shape.clone(), any::<u32>()).prop_map(|(of, count)| Shape::Array(Box::new(of), count)),
            prop::collection::vec(shape, 0..4).prop_map(Shape::Tuple),
            named.clone().prop_map(Shape::Struct),
            named.prop_map(Shape::Enum),
        ]
    })
}

fn any_stage_part() -> impl Strategy<Value = StagePart> {
    let bee = (any_cells(), any::<u64>(), any::<Option<u32>>()).prop_map(|(cells, lane, to)| BeeImage {
        cells: cells.into_iter().collect(),
        heir_of: BTreeSet::from([LaneId(lane)]).into(),
        leaves_for: to.map(ColonyId),
        ..BeeImage::default()
    });
    let rows = prop::collection::vec((any::<Vec<u8>>(), any::<Vec<u8>>()), 0..3);
    prop_oneof![
        bee.prop_map(|bee| StagePart::Bee(Box::new(bee))),
        (any::<u32>(), any::<Vec<u8>>(), rows)
            .prop_map(|(dict, key, rows)| StagePart::Rows(vec![CellImage { dict, key, rows }])),
        any_emits().prop_map(StagePart::Outbox),
    ]
}

fn any_record() -> impl Strategy<Value = Record> {
    let work = (
        (any::<u16>(), any::<u64>(), any_cells(), prop::collection::vec(any_input(), 0..3)),
        prop::collection::vec((any_id(), any_cells()), 0..3),
        any_redo(),
        any_emits(),
        (any::<u64>(), any::<u64>()),
    );
    let work = work.prop_map(|((app, bee, cells, inputs), visits, redo, emits, (next_seq, now))| {
        let visits = visits.into_iter().map(|(sweep, cells)| Visited { sweep, cells }).collect();
        let (next_seq, now) = (Seq(next_seq), Time::from_nanoseconds(now));
        let inputs = inputs.into();
        Arc::new(Work { app: AppId(app), bee: BeeId(bee), cells, inputs, visits, redo, emits, next_seq, now })
    });
    let turn = prop::collection::vec(work, 0..3).prop_map(Record::Turn);
    let admit = (any::<u16>(), any::<u32>(), any_input(), any_emits());
    let settings = prop::collection::vec((any::<u16>(), any::<u32>(), "[a-z =]{0,9}"), 0..3);
    let shapes = (prop::collection::vec(("[a-z]{0,4}", any_shape()), 0..3), "[a-z]{0,4}", any_shape());
    prop_oneof![
        3 => turn,
        1 => admit.prop_map(|(app, handler, input, emits)| {
            let input = Input { count: 1, ..input };
            Record::Admit { app: AppId(app), handler: HandlerId(handler), input, emits }
        }),
        1 => (any_id(), any_cells(), any_cells(), any::<Option<u64>>()).prop_map(|(sweep, cells, gone, next)| {
            Record::Expand { sweep, cells, gone, next: next.map(CellId) }
        }),
        1 => (any::<u16>(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(app, from, into, view)| {
            Record::Fuse { app: AppId(app), from: BeeId(from), into: BeeId(into), view }
        }),
        1 => (any::<u16>(), any::<u64>(), prop::collection::vec(any_id(), 0..3)).prop_map(|(app, bee, ids)| {
            let floors = ids.into_iter().map(|id| (id.lane, id.seq)).collect();
            Record::Release { app: AppId(app), bee: BeeId(bee), floors, view: bee }
        }),
        1 => prop::collection::vec(any::<u64>().prop_map(LaneId), 0..4).prop_map(|lanes| Record::Retire { lanes, view: 0 }),
        1 => settings.prop_map(|settings| {
            let logged = |(app, version, table)| (AppId(app), LoggedSettings { version, table });
            Record::Settings { settings: settings.into_iter().map(logged).collect() }
        }),
        1 => shapes.prop_map(|(dictionaries, name, shape)| {
            let apps = vec![AppShapes { name: name.clone(), dictionaries }];
            let names = BTreeMap::from([(MessageTypeId::of(&name, None), name.clone())]);
            Record::Shapes(Shapes { apps, messages: BTreeMap::from([(name, shape)]), names })
        }),
        1 => prop::collection::vec((any::<u16>(), any::<u64>(), any_input(), any_id(), any_cells()), 0..3).prop_map(
            |all| {
                let one = |(app, bee, input, sweep, cells)| Consumed {
                    app: AppId(app),
                    bee: BeeId(bee),
                    inputs: [input].into_iter().collect(),
                    visits: vec![Visited { sweep, cells }],
                };
                Record::Consumed(all.into_iter().map(one).collect())
            }
        ),
        1 => (any::<u16>(), any::<u64>(), prop::collection::vec(any_id(), 0..3)).prop_map(|(app, bee, ids)| {
            Record::Freeze { app: AppId(app), bee: BeeId(bee), lanes: ids.into_iter().map(|id| id.lane).collect(), to: ColonyId(1), view: bee }
        }),
        1 => (any::<u16>(), any::<u64>(), any::<u32>(), any_stage_part()).prop_map(|(app, bee, epoch, part)| {
            Record::Stage { app: AppId(app), bee: BeeId(bee), epoch: Epoch(epoch), part, at: epoch, of: 9, view: bee }
        }),
    ]
}

/// Decodes bytes as each type that a log may contain or another hive may send.
fn decode_as_all(bytes: &[u8]) {
    let _ = Entry::decode(bytes);
    let _ = decode_many::<LogState>("a state", bytes);
    let _ = decode_many::<BeeImage>("a bee", bytes);
    let _ = decode_many::<CrashMarker>("a marker", bytes);
    let _ = decode_many::<RegistryState>("a registry", bytes);
    let _ = decode_many::<Proposal>("a proposal", bytes);
    let _ = decode_many::<Decision>("a decision", bytes);
    let _ = decode_many::<Shape>("a shape", bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_entry_decodes_to_itself(number in any::<u64>(), after in any::<u64>(), record in any_record()) {
        let entry = Entry { number: EntryNumber(number), after: EntryNumber(after), record };
        prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        decode_as_all(&bytes)
    }

    /// Nearly valid bytes reach more of the decoder than random bytes do. Here one byte is changed, or the end is cut
    /// off.
    #[test]
    fn damaged_values_never_panic(record in any_record(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut values = vec![encode_many(&record), encode_many(&state()), encode_many(&registry()), encode_many(&marker())];
        for bytes in &mut values {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            decode_as_all(bytes);
            decode_as_all(&bytes[..at]);
        }
    }
}
