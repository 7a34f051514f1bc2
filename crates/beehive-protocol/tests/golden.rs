//! Golden bytes: one example of every record, of a log entry, of the state that a log folds to, and of a crash marker,
//! compared with the bytes that `golden.txt` holds. A change of the format of a log fails here.

use beehive_protocol::{
    Address, AppShapes, BeeId, CellId, Colony, Emit, Entry, Fact, HiveId, Input, LoggedSettings, Mark, Op,
    Record, Shape, Shapes, Suspect, Time, Visited, Work, codec,
};
use std::collections::{BTreeMap, BTreeSet};

const GOLDEN: &str = include_str!("golden.txt");

fn fact(seq: u64) -> Fact {
    Fact { lane: 0x0102_0304, seq, part: 0, app: 2 }
}

fn emit(seq: u64, is_sweep: bool) -> Emit {
    Emit {
        fact: fact(seq),
        name: "shop::Order".into(),
        bytes: vec![0xab, 0xcd],
        at: Some(Time::from_nanoseconds(5)),
        is_sweep,
        position: Some(1),
        origin: HiveId(7),
        sender: Address::App(3),
        hops: 4,
        chain: 0x11,
        chance: 0x22,
    }
}

fn input(seq: u64) -> Input {
    Input { lane: 0x0102_0304, floor: 1, seq, count: 2, part: 0 }
}

fn records() -> Vec<(&'static str, Record)> {
    let work = Work {
        app: 2,
        bee: BeeId(9),
        cells: vec![CellId(0x99)],
        inputs: vec![input(2)],
        visits: vec![Visited { sweep: fact(8), cells: vec![CellId(0x99)] }],
        ops: vec![
            Op { dict: 1, key: vec![1, 2], row: None, value: Some(vec![3]) },
            Op { dict: 0, key: vec![4], row: Some(vec![5]), value: None },
        ],
        emits: vec![emit(20, false)],
        next_seq: 21,
        now: Time::from_nanoseconds(1_000),
    };
    let shapes = Shapes {
        apps: vec![AppShapes {
            name: "shop".into(),
            dictionaries: vec![("stock".into(), Shape::of::<(u64, String)>())],
        }],
        messages: BTreeMap::from([("shop::Order".into(), Shape::of::<Option<Vec<u8>>>())]),
    };
    let settings = vec![(2, LoggedSettings { version: 3, table: "a = 1\n".into() })];

    vec![
        ("work", Record::Work(work)),
        ("admit", Record::Admit { app: 2, handler: 1, input: input(4), emits: vec![emit(8, true)] }),
        (
            "expand",
            Record::Expand { sweep: fact(8), cells: vec![CellId(1)], gone: vec![CellId(2)], next: None },
        ),
        ("fuse", Record::Fuse { app: 2, from: BeeId(9), into: BeeId(10) }),
        ("release", Record::Release { app: 2, bee: BeeId(10), floors: vec![(7, 3)] }),
        ("retire", Record::Retire { lanes: vec![7, 11] }),
        ("settings", Record::Settings { settings }),
        ("shapes", Record::Shapes(shapes)),
    ]
}

/// Entries that follow one another, one for each record.
fn entries() -> Vec<Entry> {
    let numbered = records().into_iter().zip(1u64..);
    numbered.map(|((_, record), number)| Entry { number, after: number - 1, record }).collect()
}

fn folded() -> Colony {
    let mut state = Colony::default();
    for entry in entries() {
        assert!(state.apply(&entry), "entry {} follows the one before it", entry.number);
    }
    state
}

fn marker() -> Mark {
    let suspect = |seq| Suspect { fact: fact(seq), cell: Some(CellId(seq)) };
    Mark { running: Some(suspect(1)), set_aside: vec![suspect(2)] }
}

fn examples() -> Vec<(String, Vec<u8>)> {
    let mut examples: Vec<(String, Vec<u8>)> =
        records().iter().map(|(name, record)| (format!("record {name}"), codec::encode(record))).collect();
    examples.push(("entry".into(), entries()[3].encode()));
    examples.push(("state".into(), codec::encode(&folded())));
    examples.push(("crash marker".into(), codec::encode(&marker())));
    examples
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_format_of_the_log_is_what_it_was() {
    let now: Vec<String> =
        examples().iter().map(|(name, bytes)| format!("{name}: {}", hexadecimal(bytes))).collect();
    let golden: Vec<&str> = GOLDEN.lines().collect();
    assert!(
        now == golden,
        "logs that older programs wrote could not be read. If that is meant, tests/golden.txt becomes:\n{}",
        now.join("\n")
    );
}

#[test]
fn every_record_is_an_example() {
    let examples = records();
    let named = |record: &Record| match record {
        Record::Work(_) => "work",
        Record::Admit { .. } => "admit",
        Record::Expand { .. } => "expand",
        Record::Fuse { .. } => "fuse",
        Record::Release { .. } => "release",
        Record::Retire { .. } => "retire",
        Record::Settings { .. } => "settings",
        Record::Shapes(_) => "shapes",
        _ => "a record without an example",
    };
    let names: BTreeSet<&str> = examples.iter().map(|(_, record)| named(record)).collect();
    assert_eq!(names.len(), 8);
    assert!(examples.iter().all(|(name, record)| *name == named(record)));
}

#[test]
fn bytes_are_read_as_what_was_written() {
    for entry in entries() {
        assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }
    assert_eq!(codec::decode("a state", &codec::encode(&folded())), Ok(folded()));
    assert_eq!(codec::decode("a crash marker", &codec::encode(&marker())), Ok(marker()));
}

#[test]
fn damaged_bytes_are_refused_and_never_panic() {
    for entry in entries() {
        let bytes = entry.encode();
        for end in 0..bytes.len() {
            assert!(Entry::decode(&bytes[..end]).is_err(), "{end} of {} bytes", bytes.len());
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let _ = Entry::decode(&damaged);
        }
    }
}
