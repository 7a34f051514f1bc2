//! Snapshots: the chunks of a state make up the state, whatever their size, and a loader refuses everything else.

mod largest_block;

use beehive_protocol::codec::{decode_many, encode_many};
use beehive_protocol::{
    Address, AppId, AppShapes, BeeId, BeeImage, CellId, ColonyId, CrashMarker, DedupTable, Emit, EntryNumber,
    Epoch, HiveId, LaneId, LogPlace, LogState, LoggedSettings, MessageId, MessageTypeId, Op, Part, Payload,
    Seq, Shape, SnapshotLoader, Staged, Suspect, Sweep, Time, Untold, Waiting, limits,
};
use largest_block::largest_block;
use proptest::prelude::*;
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Version, number and checksum.
const OVERHEAD: usize = 1 + 8 + 8;

/// A source of numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }

    /// Returns a number that may take any number of bytes.
    fn number(&mut self) -> u64 {
        let bits = self.below(5) * 16;
        let number = self.below(1 << 31) << 32 | self.below(1 << 31);
        if bits == 0 { number % 200 } else { number >> (64 - bits) }
    }

    fn bytes(&mut self, length_max: u64) -> Vec<u8> {
        (0..self.below(length_max + 1)).map(|_| self.below(256) as u8).collect()
    }

    fn id(&mut self) -> MessageId {
        let part = if self.below(4) == 0 { Part(self.number()) } else { Part::WHOLE };
        MessageId {
            lane: LaneId(self.number()),
            seq: Seq(self.below(50)),
            part,
            app: AppId(self.below(3) as u16),
        }
    }

    fn emit(&mut self) -> Emit {
        Emit {
            id: self.id(),
            message_type: MessageTypeId(self.number() as u32),
            payload: Payload::from(&self.bytes(40)[..]),
            at: (self.below(3) == 0).then(|| Time::from_nanoseconds(self.number())),
            is_sweep: self.below(2) == 0,
            position: (self.below(3) == 0).then_some(1),
            origin: HiveId(self.number() as u32),
            sender: Address::App(AppId(1)),
            hops: 2,
            chain: self.number(),
            chance: self.number(),
        }
    }

    fn seen(&mut self, entries_max: u64) -> DedupTable {
        let mut seen = DedupTable::default();
        for _ in 0..self.below(entries_max + 1) {
            let lane = LaneId(self.below(4) << self.below(60));
            match self.below(4) {
                0 => seen.raise(lane, Seq(self.below(40))),
                1 => seen.insert(lane, Seq(self.below(80)), Part(self.below(4))),
                _ => seen.insert(lane, Seq(self.below(80)), Part::WHOLE),
            }
        }
        seen
    }

    fn bee(&mut self, rows_max: u64) -> BeeImage {
        let mut bee = BeeImage { seen: self.seen(20), ..BeeImage::default() };
        bee.cells = (0..self.below(5)).map(|_| CellId(self.number())).collect();
        for _ in 0..self.below(rows_max + 1) {
            let (dict, key, row, value) =
                (self.below(3) as u32, self.bytes(3), self.bytes(3), self.bytes(60));
            bee.state.apply(Op { dict, key: &key, row: Some(&row), value: Some(&value) })
        }
        (bee.next_seq, bee.now) = (Seq(self.number()), Time::from_nanoseconds(self.number()));
        bee.heir_of = (0..self.below(3)).map(|_| LaneId(self.number())).collect();
        bee.epoch = Epoch(self.number() as u32);
        bee.leaves_for = (self.below(4) == 0).then(|| ColonyId(self.number() as u32));
        bee
    }

    fn waiting(&mut self) -> Waiting {
        Waiting { order: self.number(), emit: self.emit() }
    }

    /// Returns a state with about `size` bees, messages and sweeps.
    fn state(&mut self, size: u64) -> LogState {
        let mut state =
            LogState { last: EntryNumber(self.number()), emitted: self.number(), ..LogState::default() };
        state.seen = self.seen(size * 3);
        for _ in 0..size {
            let bee = (AppId(self.below(3) as u16), BeeId(self.number()));
            let rows_max = if self.below(4) == 0 { 40 } else { 3 };
            state.bees.insert(bee, Box::new(self.bee(rows_max)));
            state.newest.insert(bee.0, bee.1);
            if self.below(4) == 0 {
                let outbox = (0..self.below(5)).map(|_| self.emit()).collect();
                let bee = (AppId(self.below(3) as u16), BeeId(self.number()));
                let (parts, of) = (self.below(300) as u32, self.number() as u32);
                state.staged.insert(bee, Staged { bee: Box::new(self.bee(5)), outbox, parts, of });
            }
            state.frozen.insert(LaneId(self.number()));
            let mut waiting = self.waiting();
            for app in 0..1 + self.below(3) as u16 {
                // several apps get the same message
                waiting.emit.id.app = AppId(app);
                state.outbox.insert(waiting.emit.id, waiting.clone());
            }
            let waiting = self.waiting();
            let open = (0..self.below(9)).map(|_| CellId(self.number())).collect();
            let began_by = (self.below(2) == 0).then(|| self.waiting().emit.id);
            state.sweeps.insert(waiting.emit.id, Sweep { waiting, next: None, open, began_by });
        }
        state.known = self.number();
        state.untold = (0..self.below(3)).map(|_| Untold::Released { bee: BeeId(self.number()) }).collect();
        state.next_seqs.insert(LaneId::of_app(AppId(1)), Seq(self.number()));
        state.settings.insert(AppId(1), LoggedSettings { version: 2, table: "a = 1".into() });
        let dictionaries =
            vec![("accounts".into(), Shape::Tuple(vec![Shape::Unit, Shape::Plain("u8".into())]))];
        state.shapes.apps.push(AppShapes { name: "bank".into(), dictionaries });
        let suspect = Suspect { id: self.id(), cell: None };
        state.marker = Some(CrashMarker { running: vec![suspect], ..CrashMarker::default() });
        state
    }
}

fn load<'a>(chunks: impl IntoIterator<Item = &'a Vec<u8>>) -> Result<LogState, String> {
    let mut loader = SnapshotLoader::default();
    for chunk in chunks {
        loader.add(chunk).map_err(|error| error.to_string())?
    }
    loader.finish().map_err(|error| error.to_string())
}

fn chunks(state: &LogState, bytes_max: usize) -> Vec<Vec<u8>> {
    state.chunks(bytes_max).collect()
}

/// Gives each chunk the checksum that its contents have now.
fn seal(chunks: &mut [Vec<u8>]) {
    let mut checksum = 0;
    for chunk in chunks {
        let end = chunk.len() - 8;
        checksum = xxh3_64_with_seed(&chunk[..end], checksum);
        chunk[end..].copy_from_slice(&checksum.to_le_bytes())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn chunks_of_any_size_make_up_the_state(seed in any::<u64>(), size in 0..20u64, bytes_max in prop_oneof![0..60usize, 0..5_000usize]) {
        let state = Random(seed).state(size);
        let all = chunks(&state, bytes_max);
        prop_assert!(all.iter().all(|chunk| chunk.len() <= bytes_max.max(OVERHEAD + 1)));
        prop_assert!(all.iter().rev().skip(1).all(|chunk| chunk.len() == bytes_max.max(OVERHEAD + 1)));
        prop_assert!(load(&all).as_ref() == Ok(&state));

        // the size of the chunks is not part of the contents
        let contents = |all: &[Vec<u8>]| -> Vec<u8> {
            all.iter().flat_map(|chunk| chunk[9..chunk.len() - 8].to_vec()).collect()
        };
        prop_assert_eq!(contents(&all), contents(&chunks(&state, usize::MAX)));
        // neither is the way in which the state came about
        let again: LogState = decode_many("a state", &encode_many(&state)).unwrap();
        prop_assert_eq!(chunks(&again, bytes_max), all);
    }
}

/// Snapshots of early versions do not contain it.
#[test]
fn a_snapshot_contains_the_place_of_the_log_if_it_is_known() {
    let mut state = Random(4).state(3);
    for place in [None, Some(LogPlace { number: 1, of: 2 })] {
        state.place = place;
        for bytes_max in [18, 64, usize::MAX] {
            assert_eq!(load(&chunks(&state, bytes_max)).as_ref(), Ok(&state))
        }
    }
}

#[test]
fn a_chunk_that_is_not_next_is_refused_and_the_right_one_is_taken() {
    let state = Random(1).state(8);
    let all = chunks(&state, 200);
    let other = chunks(&Random(2).state(8), 200);
    assert!(all.len() > 10 && other.len() > 10);

    let mut loader = SnapshotLoader::default();
    let refused = |loader: &mut SnapshotLoader, chunk: &[u8], why: &str| {
        let error = loader.add(chunk).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    for (at, chunk) in all.iter().enumerate() {
        assert!(!loader.is_complete());
        if at > 0 {
            refused(&mut loader, &all[at - 1], &format!("chunk {} arrived instead of chunk {at}", at - 1));
            let foreign = other.get(at).unwrap_or(&other[1]);
            refused(
                &mut loader,
                foreign,
                if at < other.len() { "belongs to another snapshot" } else { "instead of" },
            );
        }
        if let Some(later) = all.get(at + 1) {
            refused(&mut loader, later, "arrived instead of")
        }
        let newer = [&[2], &chunk[1..]].concat();
        refused(&mut loader, &newer, "it has version 2 of the format; this program reads version 1");
        refused(&mut loader, &[], "too short");
        loader.add(chunk).unwrap()
    }

    assert!(loader.is_complete());
    let mut after = all[0].clone();
    after[1..9].copy_from_slice(&(all.len() as u64).to_le_bytes());
    refused(&mut loader, &after, "follows the last one");
    assert_eq!(loader.finish(), Ok(state));
    assert_eq!(
        load(&all[..all.len() - 1]).unwrap_err(),
        format!("cannot decode a snapshot: chunk {} is missing", all.len() - 1)
    );
}

/// Each byte is changed in three ways, and each chunk is cut at every length.
#[test]
fn a_damaged_chunk_is_refused() {
    for bytes_max in [60, 100_000] {
        let all = chunks(&Random(3).state(3), bytes_max);
        for at in 0..all.len() {
            let mut before = SnapshotLoader::default();
            all[..at].iter().for_each(|chunk| before.add(chunk).unwrap());
            // a refused chunk leaves the loader as it was
            for length in 0..all[at].len() {
                assert!(before.add(&all[at][..length]).is_err());
                for bit in [1, 0x10, 0x80] {
                    let mut damaged = all[at].clone();
                    damaged[length] ^= bit;
                    assert!(before.add(&damaged).is_err(), "byte {length} of chunk {at}");
                }
            }
            assert!(before.add(&[&all[at][..], &[0]].concat()).is_err());
            assert!(before.add(&all[at]).is_ok());
        }
    }
}

/// Damaged contents with the right checksum, as nobody has them by accident. Many are loaded, because most bytes are rows
/// or ids. Nothing panics, and no large block is allocated.
#[test]
fn wrong_contents_are_refused_or_loaded() {
    let (mut loaded, mut refused, mut largest) = (0, 0, 0);
    let mut check = |mut chunks: Vec<Vec<u8>>| {
        seal(&mut chunks);
        let (result, block) = largest_block(|| load(&chunks));
        largest = block.max(largest);
        match result {
            Ok(state) => {
                // what was loaded can be worked with
                assert_eq!(load(&self::chunks(&state, 64)), Ok(state));
                loaded += 1
            }
            Err(_) => refused += 1,
        }
    };

    for (seed, bytes_max) in [(4, 120), (5, 100_000)] {
        let all = chunks(&Random(seed).state(3), bytes_max);
        for at in 0..all.len() {
            for byte in 9..all[at].len() - 8 {
                for value in [all[at][byte] ^ 1, all[at][byte] ^ 0x80, 251, 252, 253] {
                    let mut damaged = all.clone();
                    damaged[at][byte] = value;
                    check(damaged)
                }
                let mut cut = all.clone();
                cut[at].remove(byte);
                check(cut);
            }
        }
    }
    println!("{loaded} loaded, {refused} refused, largest block {largest} bytes");
    assert!(loaded > 500 && refused > 500, "{loaded} loaded, {refused} refused");
    assert!(largest <= 2 << 20, "a block of {largest} bytes");
}

/// A state that is larger than anything that can be encoded as a whole, and a bee that is. One row is larger than a chunk.
#[test]
fn a_state_may_be_larger_than_a_value() {
    const CHUNK: usize = 1 << 20;
    const ROWS: u64 = 40;
    let row = vec![7; limits::ENCODED_BYTES_MAX / ROWS as usize];
    let mut bee = Box::new(BeeImage::default());
    for number in 0..=ROWS {
        bee.state.apply(Op { dict: 0, key: &[1], row: Some(&number.to_be_bytes()), value: Some(&row) })
    }
    let mut state = LogState::default();
    state.bees.insert((AppId(0), BeeId(1)), bee);

    let mut loader = SnapshotLoader::default();
    let (mut bytes, mut largest) = (0, 0);
    for chunk in state.chunks(CHUNK) {
        assert!(chunk.len() <= CHUNK);
        bytes += chunk.len();
        let (added, block) = largest_block(|| loader.add(&chunk));
        added.unwrap();
        largest = block.max(largest)
    }
    assert!(bytes > limits::ENCODED_BYTES_MAX, "{bytes} bytes");
    assert!(largest <= 3 * (row.len() + CHUNK), "a block of {largest} bytes");
    assert!(loader.finish().unwrap() == state);
}

/// Applies what some bees did to a state: they change, end, or begin. Returns the bees.
fn change(random: &mut Random, state: &mut LogState) -> BTreeSet<(AppId, BeeId)> {
    let mut changed = BTreeSet::new();
    let old: Vec<_> = state.bees.keys().copied().collect();
    for bee in old {
        match random.below(4) {
            0 => drop(state.bees.remove(&bee)),
            1 => drop(state.bees.insert(bee, Box::new(random.bee(40)))),
            _ => continue,
        }
        changed.insert(bee);
    }
    for _ in 0..random.below(4) {
        let bee = (AppId(random.below(3) as u16), BeeId(random.number()));
        state.bees.insert(bee, Box::new(random.bee(3)));
        changed.insert(bee);
    }
    // listed, although nothing happened, and there may be no such bee
    changed.extend(state.bees.keys().copied().filter(|_| random.below(5) == 0).collect::<Vec<_>>());
    changed.insert((AppId(1), BeeId(random.number())));
    changed
}

/// Returns the state with these bees only.
fn only(state: &LogState, bees: &BTreeSet<(AppId, BeeId)>) -> LogState {
    let mut part = state.clone();
    part.bees.retain(|bee, _| bees.contains(bee));
    part
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_snapshot_is_made_from_the_one_before_and_the_bees_that_changed(
        seed in any::<u64>(),
        size in 0..20u64,
        bytes_max in prop_oneof![18..60usize, 18..5_000usize],
    ) {
        let mut random = Random(seed);
        let before = random.state(size);
        let old = chunks(&before, 400);
        let mut after = LogState { bees: before.bees.clone(), ..random.state(size) };
        let changed = change(&mut random, &mut after);
        let retired: Vec<LaneId> = match random.below(2) {
            0 => Vec::new(),
            _ => before.bees.values().flat_map(|bee| bee.seen.floors().map(|(lane, _)| lane).collect::<Vec<_>>()).step_by(3).collect(),
        };
        let rest = after.bees.iter_mut().filter(|(bee, _)| !changed.contains(bee));
        rest.for_each(|(_, bee)| retired.iter().for_each(|lane| bee.seen.forget(*lane)));

        let part = only(&after, &changed);
        let merged: Result<Vec<_>, _> =
            part.merged_chunks(old.iter().cloned(), &changed, &retired, bytes_max).collect();
        prop_assert!(merged.unwrap() == chunks(&after, bytes_max));

        let mut loader = SnapshotLoader::only(changed.clone());
        old.iter().for_each(|chunk| loader.add(chunk).unwrap());
        prop_assert!(loader.finish().unwrap() == only(&before, &changed));

        // a chunk of the old snapshot is damaged or missing
        let at = random.below(old.len() as u64) as usize;
        let mut damaged = old.clone();
        match random.below(3) {
            0 => drop(damaged.remove(at)),
            1 => damaged.truncate(at),
            _ => {
                let byte = random.below(damaged[at].len() as u64) as usize;
                damaged[at][byte] ^= 1
            }
        }
        let merged: Result<Vec<_>, _> =
            part.merged_chunks(damaged.into_iter(), &changed, &retired, bytes_max).collect();
        prop_assert!(merged.is_err());
    }
}
