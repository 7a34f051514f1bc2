//! Every byte of a small folder is flipped, and every file cut at every length: the start is refused, or nothing is lost.

use crate::client::{Client, FOLDER, LOGS, clients, open, open_with};
use beehive_raft::files::{Files, SimulatedFiles};
use beehive_raft::{OpenError, inspect};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn paths(files: &SimulatedFiles) -> Vec<PathBuf> {
    let names = files.list(Path::new(FOLDER)).unwrap();
    names.iter().map(|name| Path::new(FOLDER).join(name)).collect()
}

/// Makes a folder with several starts, finished segments and, if `with_checkpoint`, a checkpoint from which the last start
/// has continued. The folder is the same each time, however late the thread is that makes checkpoints.
fn folder(with_checkpoint: bool) -> (SimulatedFiles, Vec<u64>) {
    const NEVER: u64 = 1 << 20;
    let files = SimulatedFiles::new(5);
    let mut last = vec![0; LOGS];
    let starts = if with_checkpoint { [(NEVER, 18), (4_000, 9), (NEVER, 9)] } else { [(NEVER, 4); 3] };
    for (checkpoint_after, commits) in starts {
        let data = open_with(&files, checkpoint_after).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while checkpoint_after < NEVER && data.status().checkpoints == 0 {
            // it is due, because of the segments of the first start
            assert!(Instant::now() < until, "no checkpoint is made: {:?}", data.status());
            std::thread::sleep(Duration::from_millis(5))
        }
        let mut logs = clients(&data, &last).unwrap();
        for _ in 0..commits {
            logs.iter_mut().for_each(Client::commit)
        }
        last = logs.iter().map(|client| client.last).collect();
        drop(logs);
        data.close();
    }
    let named = |what: &str| {
        let paths = paths(&files);
        paths.iter().filter(|path| path.to_string_lossy().contains(what)).count()
    };
    assert_eq!(named("checkpoint"), usize::from(with_checkpoint));
    assert!(named("log-") > 2, "there are finished segments behind the checkpoint");
    (files, last)
}

/// Opens a damaged copy of a folder. Returns whether it was refused.
fn refused_or_unharmed(copy: &SimulatedFiles, last: &[u64], what: &str) -> bool {
    let inspected = inspect(Arc::new(copy.clone()), Path::new(FOLDER));
    match open(copy) {
        Ok(data) => {
            let logs = clients(&data, last).unwrap_or_else(|why| panic!("{what}: {why}"));
            let found: Vec<u64> = logs.iter().map(|client| client.last).collect();
            assert_eq!(found, last, "{what}");
            assert!(inspected.unwrap().damage.is_none(), "{what}");
            drop(logs);
            data.close();
            false
        }
        Err(why) => {
            assert!(!matches!(why, OpenError::Io { .. }), "{what}: {why}");
            let words = why.to_string();
            assert!(
                words.starts_with(FOLDER) && words.contains("backup") || words.contains("program"),
                "{words}"
            );
            assert!(inspected.map_or_else(|_| true, |inspected| inspected.damage.is_some()), "{what}");
            true
        }
    }
}

#[test]
fn every_flipped_byte_is_refused_or_harmless() {
    for with_checkpoint in [false, true] {
        let (files, last) = folder(with_checkpoint);
        for path in paths(&files) {
            let bytes = files.content(&path).unwrap();
            let mut refused = 0;
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                let copy = files.copy();
                copy.set_content(&path, flipped);
                refused += usize::from(refused_or_unharmed(&copy, &last, &format!("{path:?}, byte {at}")))
            }
            // one wrong record of the witness does no harm, because there are others
            let is_witness = path.ends_with("witness");
            assert!(if is_witness { refused == 32 } else { refused == bytes.len() }, "{path:?}: {refused}");
        }
    }
}

#[test]
fn a_file_cut_at_every_length_is_refused_or_harmless() {
    for with_checkpoint in [false, true] {
        let (files, last) = folder(with_checkpoint);
        for path in paths(&files) {
            let bytes = files.content(&path).unwrap();
            for length in 0..bytes.len() {
                let copy = files.copy();
                copy.set_content(&path, bytes[..length].to_vec());
                let refused = refused_or_unharmed(&copy, &last, &format!("{path:?}, cut at {length}"));
                assert!(refused || path.ends_with("witness"), "{path:?}, cut at {length}");
            }
            let copy = files.copy();
            copy.remove(&path).unwrap();
            let refused = refused_or_unharmed(&copy, &last, &format!("{path:?}, removed"));
            assert!(refused || path.ends_with("lock"), "{path:?}, removed");
        }
    }
}

/// Parts of files are overwritten with noise, with zeros, or exchanged.
#[test]
fn overwritten_parts_are_refused_or_harmless() {
    let (files, last) = folder(true);
    let all = paths(&files);
    let mut random = 77u64;
    let mut next = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % bound
    };
    for round in 0..400 {
        let path = &all[next(all.len())];
        let mut bytes = files.content(path).unwrap();
        let start = next(bytes.len());
        let end = start + 1 + next(bytes.len() - start);
        let from = next(bytes.len() - (end - start) + 1);
        match round % 3 {
            0 => bytes[start..end].iter_mut().for_each(|byte| *byte = next(256) as u8),
            1 => bytes[start..end].fill(0),
            _ => bytes.copy_within(from..from + (end - start), start),
        }
        let copy = files.copy();
        copy.set_content(path, bytes);
        refused_or_unharmed(&copy, &last, &format!("{path:?}, bytes {start} to {end}, round {round}"));
    }
}

/// The process ends before the witness has seen the last groups. A flip in an earlier one is still known to be damage,
/// because a later group was written only when the earlier one was on disk. The last one may have been torn.
#[test]
fn behind_the_witness_later_groups_prove_earlier_ones() {
    let files = SimulatedFiles::new(8);
    let data = open(&files).unwrap();
    let mut logs = clients(&data, &[]).unwrap();
    let segment = Path::new("/data/log-00000000000000000001");
    let mut ends = vec![files.content(segment).unwrap().len()];
    let before = files.content(Path::new("/data/witness")).unwrap();
    for _ in 0..5 {
        logs[0].commit();
        ends.push(files.content(segment).unwrap().len())
    }
    let crashed = files.copy();
    crashed.set_content(Path::new("/data/witness"), before);
    drop(logs);
    data.close();

    let bytes = crashed.content(segment).unwrap();
    for at in ends[0]..ends[5] {
        let group = ends.partition_point(|end| *end <= at);
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        let copy = crashed.copy();
        copy.set_content(segment, flipped);
        match open(&copy) {
            Err(OpenError::Damaged { file, offset, .. }) => {
                assert!(group <= 4, "byte {at} is in the last group, which may be torn");
                assert_eq!((&*file, offset as usize), (segment, ends[group - 1]))
            }
            Err(other) => panic!("byte {at}: {other}"),
            Ok(data) => {
                assert!(group >= 4, "byte {at} of group {group}");
                let cut = data.found().cut.clone().expect("it says so");
                assert_eq!(cut.offset as usize, ends[group - 1]);
                assert_eq!(clients(&data, &[]).unwrap()[0].last, group as u64 - 1);
                data.close();
            }
        }
    }
}
