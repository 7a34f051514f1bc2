//! Mutates the messages of the corpus at random. This is a fuzzer without coverage feedback, for the stable
//! toolchain.
//!
//! `BEEHIVE_MUTATE_SECONDS` is the duration of each test in seconds (12 by default), and
//! `BEEHIVE_MUTATE_SEED` is the seed of the random numbers. If `BEEHIVE_FUZZ_SEEDS` names a folder, the
//! corpus is also written to that folder, as seeds for the fuzzers in `fuzz/`.

use std::time::{Duration, Instant};

use crate::corpus::all;
use crate::harness;
use crate::text::FLOWS;

/// A deterministic random number generator (xorshift).
struct Lots(u64);

impl Lots {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }
}

/// Applies one to eight changes of the kinds that reveal errors with lengths, counts and types.
fn mutate(bytes: &mut Vec<u8>, pool: &[Vec<u8>], lots: &mut Lots) {
    const EDGES: [u8; 14] = [0, 1, 3, 4, 7, 8, 9, 15, 16, 0x20, 0x7f, 0x80, 0xfe, 0xff];
    for _ in 0..=lots.below(8) {
        let at = lots.below(bytes.len());
        match lots.below(8) {
            0 if !bytes.is_empty() => bytes[at] = EDGES[lots.below(EDGES.len())],
            1 if !bytes.is_empty() => bytes[at] ^= 1 << lots.below(8),
            2 if !bytes.is_empty() => bytes[at] = lots.next() as u8,
            3 => bytes.truncate(at),
            4 => bytes.insert(at, lots.next() as u8),
            5 if !bytes.is_empty() => drop(bytes.remove(at)),
            6 => {
                let other = &pool[lots.below(pool.len())];
                let (start, end) = (lots.below(other.len()), lots.below(other.len() + 1));
                bytes.splice(at..at, other.get(start..end).unwrap_or(&[]).iter().copied());
            }
            _ => {
                let end = (at + lots.below(32)).min(bytes.len());
                let part = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, part);
            }
        }

        bytes.truncate(4_096);
    }
}

/// Returns streams of four messages each. A byte with the segment length precedes each stream.
fn streams() -> Vec<Vec<u8>> {
    all().windows(4).map(|four| std::iter::once(four[0].len() as u8).chain(four.concat()).collect()).collect()
}

/// Returns flows as text. A byte that selects the version precedes each flow.
fn texts() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for (text, versions) in FLOWS {
        for version in versions.clone() {
            texts.push(std::iter::once(version).chain(text.bytes()).collect());
        }
    }
    texts
}

fn run(name: &str, pool: &[Vec<u8>], framed: bool, body: fn(&[u8])) {
    let seconds =
        std::env::var("BEEHIVE_MUTATE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let seed = std::env::var("BEEHIVE_MUTATE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0x5eed);
    let (start, mut lots, mut count) = (Instant::now(), Lots(seed | 1), 0u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        let mut bytes = pool[lots.below(pool.len())].clone();
        mutate(&mut bytes, pool, &mut lots);
        if framed && lots.below(4) > 0 && bytes.len() >= 8 {
            let length = (bytes.len() as u16).to_be_bytes();
            bytes[2..4].copy_from_slice(&length);
        }

        let (input, began) = (bytes.clone(), Instant::now());
        if let Err(panic) = std::panic::catch_unwind(|| body(&input)) {
            eprintln!("{name} fails on {}", crate::corpus::hex(&bytes));
            std::panic::resume_unwind(panic);
        }

        // The limit is generous, because the machine may be under load. An endless loop exceeds any limit.
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{name} takes too long on {}",
            crate::corpus::hex(&bytes)
        );

        count += 1;
    }

    eprintln!("{name}: {count} mutations in {seconds} s");
}

#[test]
fn mutated_messages_are_parsed_or_refused() {
    run("parse", &all(), true, harness::parse);
}

#[test]
fn mutated_messages_go_round() {
    run("round trip", &all(), true, harness::round_trip);
}

#[test]
fn mutated_streams_are_split_alike() {
    run("stream split", &streams(), false, harness::stream_split);
}

#[test]
fn mutated_text_is_read_or_refused() {
    run("text", &texts(), false, harness::text);
}

#[test]
fn the_fuzzers_start_from_the_same() {
    let pools = [("parse", all()), ("round_trip", all()), ("stream_split", streams()), ("text", texts())];
    for (target, pool) in pools {
        let body = match target {
            "parse" => |bytes: &[u8]| harness::framed(bytes, harness::parse),
            "round_trip" => |bytes: &[u8]| harness::framed(bytes, harness::round_trip),
            "stream_split" => harness::stream_split,
            _ => harness::text,
        };

        pool.iter().for_each(|seed| body(seed));
        let Some(folder) = std::env::var_os("BEEHIVE_FUZZ_SEEDS") else { continue };
        let folder = std::path::Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder).unwrap();
        for (index, seed) in pool.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{index:04}")), seed).unwrap();
        }
    }
}
