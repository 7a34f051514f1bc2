//! A log with damaged records, or with records or proposals that no hive writes: the state machine ends, and takes no more
//! memory than the bytes and the state warrant.

mod largest_block;

use beehive_protocol::codec::{append_integer, decode_many, encode_many};
use beehive_protocol::{
    Acked, Address, AppId, BeeId, CellId, ColonyId, Consumed, Emit, Emits, Entry, HandlerId, HiveId, Input,
    LaneId, LogState, MessageId, MessageTypeId, Part, Payload, Proposal, Record, Seq, SnapshotLoader, Time,
    Work, limits,
};
use largest_block::largest_block;
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A decoder may reserve this many bytes for a list whose length it has not checked.
const RESERVED_BYTES: usize = 1 << 20;

fn apply(state: &mut LogState, record: Record) {
    let (number, after) = (state.last.next(), state.last);
    assert!(state.apply(&Entry { number, after, record }));
}

/// The encoded records of `golden.rs`.
fn golden() -> Vec<Vec<u8>> {
    let lines = include_str!("golden_bytes.txt").lines();
    let hex = |hex: &str| -> Vec<u8> {
        let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        bytes.collect()
    };
    lines
        .filter_map(|line| line.strip_prefix("Record::")?.split_once(' '))
        .map(|(_, bytes)| hex(bytes))
        .collect()
}

/// A change of a record's bytes.
#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    // these bytes say how long an integer is
    let byte = prop_oneof![any::<u8>(), 250..=255u8, 0..4u8];
    prop_oneof![
        4 => (any::<prop::sample::Index>(), byte.clone()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        2 => (any::<prop::sample::Index>(), byte).prop_map(|(at, byte)| Damage::Insert(at, byte)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            _ if bytes.is_empty() => {}
            Damage::Set(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte
            }
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
        }
    }
}

/// Parts of the messages with which the state machine panics, in builds with debug assertions, if a hive has written
/// records in a wrong order.
const ASSERTIONS: [&str; 4] =
    ["are staged in order", "about to move", "comes back before", "belong to another move"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_records(records in prop::collection::vec(
        (any::<prop::sample::Index>(), prop::collection::vec(damage(), 0..4)), 1..60,
    )) {
        let golden = golden();
        let mut state = LogState::default();
        for (which, damages) in records {
            let mut bytes = which.get(&golden).clone();
            damages.iter().for_each(|damage| damage.apply(&mut bytes));
            let (record, largest) = largest_block(|| decode_many::<Record>("a record", &bytes));
            let bytes_max = limits::ENCODED_BYTES_MAX + RESERVED_BYTES;
            prop_assert!(largest <= bytes_max, "{} bytes for {:02x?}", largest, bytes);
            let Ok(record) = record else { continue };
            let applied = catch_unwind(AssertUnwindSafe(|| apply(&mut state, record)));
            if let Err(panic) = applied {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                let is_known = ASSERTIONS.iter().any(|assertion| text.contains(assertion));
                prop_assert!(cfg!(debug_assertions) && is_known, "{}", text);
                break;
            }
        }

        let mut loader = SnapshotLoader::default();
        for chunk in state.chunks(4096) {
            prop_assert_eq!(loader.add(&chunk), Ok(()));
        }
        prop_assert_eq!(loader.finish(), Ok(state))
    }
}

fn id(seq: u64, app: u16) -> MessageId {
    let lane = LaneId::of_bee(AppId(0), BeeId(1));
    MessageId { lane, seq: Seq(seq), part: Part::WHOLE, app: AppId(app) }
}

fn emit(id: MessageId) -> Emit {
    Emit {
        id,
        message_type: MessageTypeId(1),
        payload: Payload::from(&[][..]),
        at: None,
        is_sweep: id.app == AppId(3),
        position: None,
        origin: HiveId(0),
        sender: Address::App(AppId(0)),
        hops: 0,
        chain: 0,
        chance: 0,
    }
}

/// A new bee, which emits messages.
fn work(app: u16, bee: u64, emits: Vec<Emit>) -> Arc<Work> {
    Arc::new(Work {
        app: AppId(app),
        bee: BeeId(bee),
        cells: vec![CellId(bee)],
        inputs: Default::default(),
        visits: Vec::new(),
        redo: Default::default(),
        emits: Emits(emits),
        next_seq: Seq(9),
        now: Time::ZERO,
    })
}

/// The bytes end where the first input should be.
#[test]
fn a_list_of_inputs_that_claims_to_be_long() {
    let one = Consumed { app: AppId(2), bee: BeeId(7), inputs: Default::default(), visits: Vec::new() };
    let mut bytes = encode_many(&Record::Consumed(vec![one]));
    // the lengths of both lists
    bytes.truncate(bytes.len() - 2);
    append_integer(1 << 24, &mut bytes);
    let (decoded, largest) = largest_block(|| decode_many::<Record>("a record", &bytes));
    assert!(decoded.is_err());
    assert!(largest <= RESERVED_BYTES, "{largest} bytes for {} bytes", bytes.len());
}

/// A record that consumes many messages without a bee would make the log remember each of them.
#[test]
fn a_record_that_consumes_many_messages_without_a_bee() {
    let input =
        Input { lane: LaneId::lasting(6), floor: Some(Seq(2)), seq: Seq(3), count: 1, part: Part::WHOLE };
    let admit = |count| {
        let input = Input { count, ..input };
        Record::Admit { app: AppId(2), handler: HandlerId(9), input, emits: Emits(Vec::new()) }
    };
    let decoded = |count| decode_many::<Record>("a record", &encode_many(&admit(count)));
    assert_eq!(decoded(1), Ok(admit(1)));
    for count in [2, 10_000_000, u32::MAX] {
        let error = decoded(count).expect_err("more than one");
        assert!(error.why.contains("limits::ADMITTED_MESSAGES_MAX"), "{error}");
    }
}

/// A run of messages takes few bytes, and few steps, however long it is. A part is of one message.
#[test]
fn a_record_that_consumes_a_long_run() {
    let lane = LaneId::of_bee(AppId(0), BeeId(1));
    let consumed = |floor, count, part| {
        let inputs = [Input { lane, floor, seq: Seq(0), count, part }].into_iter().collect();
        let one = Consumed { app: AppId(2), bee: BeeId(7), inputs, visits: Vec::new() };
        decode_many::<Record>("a record", &encode_many(&Record::Consumed(vec![one])))
    };
    let error = consumed(None, 2, Part(5)).expect_err("parts of two messages");
    assert!(error.why.contains("one part only"), "{error}");

    for floor in [None, Some(Seq(1))] {
        let mut state = LogState::default();
        let own = |app, seq| emit(id(seq, app));
        let emits = vec![own(2, 3), own(1, 3), own(2, 5)];
        apply(&mut state, Record::Turn(vec![work(0, 1, emits), work(2, 7, vec![])]));
        let record = consumed(floor, u32::MAX, Part::WHOLE).unwrap();
        let ((), largest) = largest_block(|| apply(&mut state, record));
        assert!(largest < RESERVED_BYTES, "{largest} bytes");

        let seen = &state.bees[&(AppId(2), BeeId(7))].seen;
        let is_seen = |seq| seen.contains(lane, Seq(seq), Part::WHOLE);
        // those that were in the outbox of this log cannot arrive again
        let is_taken = floor.is_none();
        assert_eq!([2, 3, 4, 5, 6].map(is_seen), [true, !is_taken, true, !is_taken, true]);
        assert!(is_seen(u64::from(u32::MAX) - 1) && !is_seen(u64::from(u32::MAX)));
        let waits = |app, seq| state.outbox.contains_key(&id(seq, app));
        assert_eq!([waits(2, 3), waits(2, 5), waits(1, 3)], [!is_taken, !is_taken, true]);
    }
}

/// A proposal of another hive claims to name many cells, or names many, or many members.
#[test]
fn a_proposal_that_names_more_than_it_may() {
    let (app, colony) = (AppId(2), ColonyId(1));
    let claim = |cells: u64| Proposal::Claim { app, cells: (0..cells).map(CellId).collect(), colony };
    let decoded = |proposal: &Proposal| {
        let bytes = encode_many(proposal);
        let (decoded, largest) = largest_block(|| decode_many::<Proposal>("a proposal", &bytes));
        assert!(largest <= RESERVED_BYTES, "{largest} bytes for {} bytes", bytes.len());
        decoded
    };
    let most = limits::CLAIM_CELLS_MAX as u64;
    assert_eq!(decoded(&claim(most)), Ok(claim(most)));
    for cells in [most + 1, 1_000_000] {
        let error = decoded(&claim(cells)).map(drop).expect_err("too many cells");
        assert!(error.why.contains("limits::CLAIM_CELLS_MAX"), "{error}");
    }

    let found = |members: u32| {
        let members = (0..members).map(HiveId).collect();
        Proposal::Found { after: ColonyId(0), members, is_replicated: true }
    };
    let most = limits::COLONY_MEMBERS_MAX as u32;
    assert_eq!(decoded(&found(most)), Ok(found(most)));
    let error = decoded(&found(most + 1)).map(drop).expect_err("too many members");
    assert!(error.why.contains("limits::COLONY_MEMBERS_MAX"), "{error}");

    // the bytes end where the first cell should be
    let mut bytes = encode_many(&claim(0));
    bytes.truncate(bytes.len() - 2);
    append_integer(1 << 24, &mut bytes);
    let (decoded, largest) = largest_block(|| decode_many::<Proposal>("a proposal", &bytes));
    assert!(decoded.is_err());
    assert!(largest <= RESERVED_BYTES, "{largest} bytes for {} bytes", bytes.len());
}

/// An acknowledgment takes eleven bytes, however many messages it names.
#[test]
fn an_acknowledgment_of_more_messages_than_there_are() {
    let mut state = LogState::default();
    let emits = (0..9).flat_map(|seq| (1..=3).map(move |app| emit(id(seq, app)))).collect::<Vec<_>>();
    apply(&mut state, Record::Turn(vec![work(0, 1, emits)]));

    for app in [1, 3] {
        let MessageId { lane, part, .. } = id(0, 1);
        let acked = Acked { app: AppId(app), lane, seq: Seq(2), count: u32::MAX, part };
        let record = Record::Acked(vec![acked]);
        assert!(encode_many(&record).len() <= 16);
        let ((), largest) = largest_block(|| apply(&mut state, record));
        assert!(largest < RESERVED_BYTES, "{largest} bytes");
    }
    let left = |app| (0..9).filter(|seq| state.outbox.contains_key(&id(*seq, app))).count();
    assert_eq!((left(1), left(2), state.sweeps.len()), (2, 9, 2));
}
