//! Files that fail: what the hive is told, and what is there at the next start.

use crate::client::{FOLDER, clients, open};
use beehive_raft::files::{Fault, Files, SimulatedFiles};
use beehive_raft::{Data, OpenError, Options, limits};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(1))
    }
}

/// Waits until the witness rests, so that the next operation is the log's.
fn settle(files: &SimulatedFiles) {
    let mut last = (files.operations(), Instant::now());
    wait_until("the files rest", || {
        if files.operations() != last.0 {
            last = (files.operations(), Instant::now())
        }
        last.1.elapsed() > Duration::from_millis(250)
    })
}

fn fail_next(files: &SimulatedFiles, skipped: u64, fault: Fault) {
    files.fail_at(files.operations() + 1 + skipped, fault)
}

#[test]
fn a_failed_sync_is_final_and_nothing_is_acknowledged_behind_it() {
    // the first operation of a group appends, the second one syncs
    for skipped in [0, 1] {
        let files = SimulatedFiles::new(9);
        let data = open(&files).unwrap();
        let mut logs = clients(&data, &[]).unwrap();
        let client = &mut logs[0];
        (0..3).for_each(|_| client.commit());
        settle(&files);

        fail_next(&files, skipped, Fault::Device);
        client.append();
        wait_until("the log fails", || data.status().failed.is_some());
        let why = data.status().failed.unwrap();
        assert!(why.starts_with(["cannot append", "cannot sync"][skipped as usize]), "{why}");

        // an entry behind it is refused, and so is the next attempt, at a bounded pace
        client.append();
        wait_until("it is refused", || client.reports.aborted().contains(&4));
        client.append_after(6, 4);
        wait_until("it is refused again", || client.reports.aborted().len() > 1);
        assert!(client.reports.aborted().len() < 20, "{:?}", client.reports.aborted());
        assert_eq!(client.reports.released_upto(), 3);
        assert_eq!(data.status().failed, Some(why), "no later sync has made it good");

        drop(logs);
        data.close();
        let again = open(&files).unwrap();
        let logs = clients(&again, &[3]).unwrap();
        assert_eq!(
            logs[0].last,
            3 + skipped,
            "the entry whose sync failed could still be read, and is on disk now"
        );
        let last = [logs[0].last];
        drop(logs);
        again.close();
        files.power_off();
        files.power_on();
        clients(&open(&files).unwrap(), &last).unwrap();
    }
}

#[test]
fn a_full_disk_holds_entries_up_and_loses_none() {
    for spare in (0..600).step_by(20) {
        let files = SimulatedFiles::new(spare + 1);
        let data = open(&files).unwrap();
        let mut logs = clients(&data, &[]).unwrap();
        (0..5).for_each(|_| logs[0].commit());

        files.set_capacity(Some(files.used() + spare as usize));
        // the witness replaces its file now and then, so for a moment the disk may only seem to be full
        wait_until("the disk is full, and nothing is acknowledged", || {
            logs[0].append();
            logs[1].append();
            data.status().held_up.is_some() && !logs[0].reports.wait(logs[0].last, Duration::from_millis(5))
        });
        let (first, second) = (logs[0].last, logs[1].last);

        files.set_capacity(None);
        for (log, last) in [(0, first), (1, second)] {
            assert!(logs[log].reports.wait(last, LONG), "log {log} goes on");
            assert!(logs[log].reports.aborted().is_empty());
            logs[log].commit()
        }
        wait_until("the status says so", || data.status().held_up.is_none());
        assert_eq!(data.status().failed, None);

        drop(logs);
        data.close();
        clients(&open(&files).unwrap(), &[first + 1, second + 1]).unwrap();
    }
}

#[test]
fn what_waits_is_bounded() {
    const MIB: usize = 1 << 20;
    let files = SimulatedFiles::new(1);
    let data = open(&files).unwrap();
    let mut logs = clients(&data, &[]).unwrap();
    let client = &mut logs[0];
    files.set_capacity(Some(files.used()));
    client.append_large(MIB);
    wait_until("the disk is full", || data.status().held_up.is_some());

    let most = limits::WAITING_BYTES_MAX / MIB + 10;
    (0..most).for_each(|_| client.append_large(MIB));
    files.set_capacity(None);
    wait_until("the rest is refused", || !client.reports.aborted().is_empty());
    let last = client.reports.aborted()[0];
    assert!((60..most as u64 - 5).contains(&last), "entry {last} is the last one that waited");
    assert!(client.reports.wait(last, LONG));
    client.append_after(1_000, last);
    assert!(client.reports.wait(1_000, LONG), "the log goes on behind it");

    drop(logs);
    data.close();
    let state = open(&files).unwrap().journals().remove(0).1;
    let large = state.settings.values().next().unwrap().version;
    assert_eq!((state.emitted, u64::from(large)), (1, last), "what was refused is not there");
}

/// No space for any operation of any file in turn.
#[test]
fn no_operation_without_space_costs_an_acknowledged_entry() {
    for at in 1..140 {
        let files = SimulatedFiles::new(at);
        files.fail_at(at, Fault::NoSpace);
        let mut last = [0, 0];
        for _ in 0..4 {
            let Ok(data) = open(&files) else { continue };
            let mut logs = clients(&data, &last).unwrap_or_else(|why| panic!("operation {at}: {why}"));
            for client in &mut logs {
                (0..9).for_each(|_| client.append());
                let end = client.last;
                wait_until("all is released, or the log has failed", || {
                    client.reports.released_upto() == end || data.status().failed.is_some()
                });
            }
            last = [0, 1].map(|log: usize| last[log].max(logs[log].reports.released_upto()));
            drop(logs);
            data.close();
        }
        let data = open(&files).unwrap_or_else(|why| panic!("operation {at}: {why}"));
        clients(&data, &last).unwrap_or_else(|why| panic!("operation {at}: {why}"));
        assert!(last[0] > 0);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let files = SimulatedFiles::new(1);
    let data = open(&files).unwrap();
    let mut logs = clients(&data, &[]).unwrap();
    (0..40).for_each(|_| logs[0].commit());
    drop(logs);
    data.close();

    let mut named = 0;
    for at in 1..30 {
        let copy = files.copy();
        copy.fail_at(at, Fault::Device);
        match open(&copy) {
            Err(OpenError::Io { file, error, .. }) => {
                assert!(file.starts_with(FOLDER) && error.raw_os_error() == Some(5), "{file:?}");
                named += 1
            }
            Err(other) => panic!("operation {at}: {other}"),
            // the start has fewer operations
            Ok(_) => break,
        }
        clients(&open(&copy).unwrap(), &[40]).unwrap();
    }
    assert!(named > 10, "{named}");
}

fn refused(result: Result<Data, OpenError>) -> String {
    result.expect_err("it is refused").to_string()
}

/// Everything in a file system.
fn everything(files: &SimulatedFiles, folder: &str) -> Vec<(String, Option<Vec<u8>>)> {
    let names = files.list(Path::new(folder)).unwrap();
    names.into_iter().map(|name| (name.clone(), files.content(&Path::new(folder).join(name)))).collect()
}

#[test]
fn a_folder_that_is_not_this_hives_is_refused_with_the_remedy() {
    let files = SimulatedFiles::new(2);
    let options = || Options::default().files(Arc::new(files.clone()));
    let data = options().hive(beehive_core::HiveId(3)).open(FOLDER).unwrap();
    data.begin().unwrap();
    let in_use = refused(options().open(FOLDER));
    assert_eq!(
        in_use,
        "/data: the folder is in use; stop the other process, or give this one a folder of its own"
    );
    data.close();

    let before = everything(&files, FOLDER);
    assert!(refused(options().hive(beehive_core::HiveId(4)).open(FOLDER)).contains("belongs to hive 3"));
    assert!(refused(options().logs(2).open(FOLDER)).contains("open it with 1"));
    assert_eq!(everything(&files, FOLDER), before);
    let again = options().hive(beehive_core::HiveId(3)).open(FOLDER).unwrap();
    assert_eq!((again.identity().hive, again.identity().incarnation), (3, 2));
    assert_eq!(again.identity().seed, data.identity().seed);
    again.close();
    assert_eq!(everything(&files, FOLDER), before, "the start was not carried out");

    files.set_content(Path::new("/other/notes.txt"), b"mine".to_vec());
    assert!(refused(options().open("/other")).contains("`notes.txt`, but no hive"));
    assert_eq!(everything(&files, "/other").len(), 1, "not even a lock");

    let identity = Path::new("/data/identity");
    let text = String::from_utf8(files.content(identity).unwrap()).unwrap();
    assert!(text.starts_with("beehive data, format 1\nfolder "), "{text}");
    let newer = text.replace("format 1", "format 2");
    let (content, _) = newer.split_once("checksum").unwrap();
    let checksum = xxhash_rust::xxh3::xxh3_64(content.as_bytes());
    files.set_content(identity, format!("{content}checksum {checksum:016x}\n").into_bytes());
    assert!(refused(options().open(FOLDER)).contains("start the program that wrote it"));
}

/// On real files, because simulated folders are only names.
#[test]
fn a_folder_where_a_file_belongs_is_named_with_the_remedy() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("folder-for-file");
    let _ = std::fs::remove_dir_all(&folder);
    let data = Data::open(&folder).unwrap();
    data.begin().unwrap();
    data.close();
    for name in ["identity", "witness", "log-00000000000000000001", "lock"] {
        let (file, kept) = (folder.join(name), folder.join("kept"));
        std::fs::rename(&file, &kept).unwrap();
        std::fs::create_dir(&file).unwrap();
        let why = refused(Data::open(&folder));
        let begins = format!("{}: cannot ", file.display());
        assert!(why.starts_with(&begins) && why.contains("a folder is where a file"), "{why}");
        std::fs::remove_dir(&file).unwrap();
        std::fs::rename(&kept, &file).unwrap()
    }
    let why = refused(Data::open(folder.join("identity")));
    assert!(why.contains("a file is where the folder belongs"), "{why}");
    Data::open(&folder).unwrap().begin().unwrap();
}
