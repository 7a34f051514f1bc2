//! Tests of the logs on disk: against openraft's own suite, and against a log in memory while the power fails.

use super::{OpenDisk, open};
use crate::cluster::log_store::LogStore;
use crate::cluster::machine::{Encode, Fold, Machine};
use crate::cluster::options::ClusterOptions;
use crate::cluster::types::{
    Chunks, Command, GroupId, LogEntry, LogId, MemberId, Reply, Snapshot, SnapshotMeta, Types, Vote,
};
use crate::error::OpenError;
use crate::files::{Fault, Files, SimulatedFiles};
use beehive_core::HiveId;
use futures_util::FutureExt;
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::OneshotReceiverOf;
use openraft::{EntryPayload, StorageError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const FOLDER: &str = "/hive-1";
/// The news that openraft gets of entries.
type Flushed = OneshotReceiverOf<Types, io::Result<()>>;

const GROUPS: [GroupId; 2] = [GroupId(0), GroupId(3)];

fn options(files: &SimulatedFiles) -> ClusterOptions {
    let mut options = ClusterOptions::new(HiveId(1), [HiveId(0), HiveId(2)], 7);
    options.folder = Some(FOLDER.into());
    options.files = Arc::new(files.clone());
    (options.segment_bytes, options.checkpoint_after_bytes) = (600, 1500);
    options
}

fn reopen(files: &SimulatedFiles) -> Result<OpenDisk, OpenError> {
    let mut random = 40;
    let mut next = || {
        random += 1;
        random
    };
    open(&options(files), Path::new(FOLDER), &mut next).map(|opened| opened.disk)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn vote(term: u64) -> Vote {
    Vote::new(term, MemberId::from(1))
}

fn entry(term: u64, index: u64) -> LogEntry {
    let command = Command(vec![index as u8; 20 + index as usize % 60].into());
    LogEntry::new(LogId::new_term_index(term, index), EntryPayload::Normal(command))
}

fn snapshot(last: LogId) -> Snapshot {
    let meta = SnapshotMeta { last_log_id: Some(last), ..SnapshotMeta::default() };
    let chunk = |number: u8| vec![number + last.index as u8; 40];
    Snapshot { meta, snapshot: Arc::new(vec![chunk(0), chunk(1)]) }
}

/// Appends entries. Returns what openraft learns.
async fn append(store: &mut LogStore, entries: Vec<LogEntry>) -> Flushed {
    let (done, flushed) = Types::oneshot();
    // an error reaches the callback, too
    let _ = store.append(entries, IOFlushed::signal(done)).await;
    flushed
}

async fn must_append(store: &mut LogStore, entries: Vec<LogEntry>) {
    append(store, entries).await.await.unwrap().unwrap()
}

// openraft's suite

struct Nothing;

impl Fold for Nothing {
    fn begin_term(&self, _: u64, _: u64) -> Result<(), String> {
        Ok(())
    }
    fn apply(&self, _: &Command, _: u64) -> Result<Reply, String> {
        Ok(Reply::Nothing)
    }
    fn pass(&self, _: u64) {}
    fn copy(&self) -> Encode {
        Box::new(|| Ok(vec![b"state".to_vec()]))
    }
    fn load(&self, _: &Chunks, _: u64) -> Result<(), String> {
        Ok(())
    }
}

/// Builds stores on new folders, or in memory.
struct Stores {
    are_on_disk: bool,
}

impl StoreBuilder<Types, LogStore, Machine, Option<OpenDisk>> for Stores {
    async fn build(&self) -> Result<(Option<OpenDisk>, LogStore, Machine), StorageError<Types>> {
        let disk = self.are_on_disk.then(|| reopen(&SimulatedFiles::new(1)).unwrap());
        let store = match &disk {
            Some(disk) => LogStore::on(&disk.0, GroupId(5)),
            None => LogStore::default(),
        };
        let store = store.begin_anywhere();
        Ok((disk, store.clone(), Machine::new(Arc::new(Nothing), store)))
    }
}

#[test]
fn the_store_in_memory_passes_the_suite_of_openraft() {
    block_on(Suite::test_all(Stores { are_on_disk: false })).unwrap()
}

#[test]
fn the_store_on_disk_passes_the_suite_of_openraft() {
    block_on(Suite::test_all(Stores { are_on_disk: true })).unwrap()
}

// what is on disk when

#[test]
fn what_was_acknowledged_is_there_after_a_power_loss() {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    let mut store = LogStore::on(&disk.0, GROUPS[0]);
    block_on(async {
        store.save_vote(&vote(4)).await.unwrap();
        must_append(&mut store, vec![entry(4, 0), entry(4, 1)]).await
    });
    let before = store.copy();
    files.power_off();
    block_on(disk.0.close());
    files.power_on();
    let disk = reopen(&files).unwrap();
    assert_eq!(LogStore::on(&disk.0, GROUPS[0]).copy(), before)
}

#[test]
fn all_that_waits_shares_one_sync() {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    files.set_sync_time(std::time::Duration::from_millis(20));
    block_on(async {
        let mut stores: Vec<LogStore> = (0..50).map(|group| LogStore::on(&disk.0, GroupId(group))).collect();
        let mut flushed = Vec::new();
        for store in &mut stores {
            flushed.push(append(store, vec![entry(1, 0)]).await)
        }
        for flushed in flushed {
            flushed.await.unwrap().unwrap()
        }
    });
    assert!(disk.0.syncs() <= 3, "{} syncs", disk.0.syncs())
}

#[test]
fn after_a_sync_that_failed_nothing_is_acknowledged() {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    let (mut store, mut other) = (LogStore::on(&disk.0, GROUPS[0]), LogStore::on(&disk.0, GROUPS[1]));
    block_on(async {
        must_append(&mut store, vec![entry(1, 0)]).await;
        // the append, and then the sync
        files.fail_at(files.operations() + 2, Fault::Device);
        let flushed = append(&mut store, vec![entry(1, 1)]).await.await.unwrap();
        assert!(flushed.unwrap_err().to_string().contains("cannot sync"));
        disk.0.failure().await;
        // no later call looks better, in no group
        assert!(append(&mut store, vec![entry(1, 2)]).await.await.unwrap().is_err());
        assert!(other.save_vote(&vote(9)).await.is_err());
        assert!(other.purge(LogId::new_term_index(1, 0)).await.is_err());
        assert!(store.save_snapshot(&snapshot(LogId::new_term_index(1, 0))).await.is_err());
        disk.0.close().await
    });
    files.power_off();
    files.power_on();
    let disk = reopen(&files).unwrap();
    let log = LogStore::on(&disk.0, GROUPS[0]).copy();
    assert!(log.entries.len() == 1 || log.entries.len() == 2, "{log:?}");
    assert_eq!(LogStore::on(&disk.0, GROUPS[1]).copy().vote, None)
}

#[test]
fn while_the_disk_is_full_calls_wait() {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    let mut store = LogStore::on(&disk.0, GROUPS[0]);
    files.set_capacity(Some(files.used()));
    block_on(async {
        let flushed = append(&mut store, vec![entry(1, 0)]).await;
        tokio::time::sleep(std::time::Duration::from_millis(120)).await;
        let mut flushed = Box::pin(flushed);
        assert!((&mut flushed).now_or_never().is_none(), "acknowledged on a full disk");
        files.set_capacity(None);
        flushed.await.unwrap().unwrap()
    })
}

#[test]
fn old_segments_and_snapshots_are_removed() {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    let mut store = LogStore::on(&disk.0, GROUPS[0]);
    let mut most = 0;
    block_on(async {
        for index in 0..400 {
            must_append(&mut store, vec![entry(1, index)]).await;
            if index % 20 == 19 {
                let last = LogId::new_term_index(1, index);
                store.save_snapshot(&snapshot(last)).await.unwrap();
                store.purge(last).await.unwrap()
            }
            most = most.max(files.used())
        }
    });
    assert!(most < 12_000, "{most} bytes at once");
    let before = store.copy();
    block_on(disk.0.close());
    let disk = reopen(&files).unwrap();
    assert_eq!(LogStore::on(&disk.0, GROUPS[0]).copy(), before);
    // the newest snapshot, and nothing that a crash has left
    let names = files.list(Path::new(FOLDER)).unwrap();
    assert_eq!(names.iter().filter(|name| name.starts_with("snapshot-")).count(), 1, "{names:?}")
}

#[test]
fn a_snapshot_that_is_noted_already_is_permanent_when_the_second_caller_goes_on() {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    let mut store = LogStore::on(&disk.0, GROUPS[0]);
    block_on(async {
        must_append(&mut store, vec![entry(1, 0)]).await;
        let before = disk.0.syncs();
        files.set_sync_time(std::time::Duration::from_millis(100));
        let first = store.clone();
        let first =
            tokio::spawn(async move { first.save_snapshot(&snapshot(LogId::new_term_index(1, 0))).await });
        while store.read(|log| log.snapshot.is_none()) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await
        }
        store.save_snapshot(&snapshot(LogId::new_term_index(1, 0))).await.unwrap();
        assert!(disk.0.syncs() > before, "the note waits to be written");
        first.await.unwrap().unwrap()
    })
}

#[test]
fn many_starts_leave_few_segments() {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    block_on(async {
        must_append(&mut LogStore::on(&disk.0, GROUPS[0]), vec![entry(1, 0), entry(1, 1)]).await;
        disk.0.close().await
    });
    for start in 0..100 {
        let disk = reopen(&files).unwrap();
        assert_eq!(LogStore::on(&disk.0, GROUPS[0]).copy().entries.len(), 2, "start {start}");
        block_on(disk.0.close())
    }
    let names = files.list(Path::new(FOLDER)).unwrap();
    assert!(names.len() < 80, "{} files", names.len())
}

/// Makes a folder with a checkpoint, a snapshot and a segment behind them. Returns its files, closed.
fn folder() -> SimulatedFiles {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    let mut store = LogStore::on(&disk.0, GROUPS[0]);
    block_on(async {
        for index in 0..60 {
            must_append(&mut store, vec![entry(1, index)]).await
        }
        let last = LogId::new_term_index(1, 30);
        store.save_snapshot(&snapshot(last)).await.unwrap();
        store.purge(last).await.unwrap();
        must_append(&mut store, vec![entry(1, 60)]).await;
        disk.0.close().await
    });
    files
}

#[test]
fn any_damage_in_any_file_is_refused_with_its_place() {
    let files = folder();
    let names = files.list(Path::new(FOLDER)).unwrap();
    for kind in ["log-", "checkpoint-", "snapshot-", "witness", "identity"] {
        assert!(names.iter().any(|name| name.starts_with(kind)), "{kind}: {names:?}")
    }
    for name in names.iter().filter(|name| *name != "lock") {
        let path = Path::new(FOLDER).join(name);
        let bytes = files.content(&path).unwrap();
        for at in (0..bytes.len()).step_by(if name == "identity" { 1 } else { 7 }) {
            // the witness says each end twice
            if name == "witness" && at >= 32 {
                break;
            }
            let copy = files.copy();
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            copy.set_content(&path, damaged);
            let refused = reopen(&copy).map(drop).unwrap_err();
            let text = refused.to_string();
            assert!(text.starts_with(FOLDER) && text.contains(';'), "{name}, byte {at}: {text}")
        }

        let copy = files.copy();
        copy.remove(&path).unwrap();
        // nothing shows that a snapshot, the witness or a segment is not to be there but what names it
        let refused = reopen(&copy).map(drop).unwrap_err();
        assert!(matches!(refused, OpenError::Missing { .. }), "{name}: {refused}");
    }
    reopen(&files).unwrap();
}

#[test]
fn a_snapshot_that_cannot_be_written_fails_the_log() {
    let files = SimulatedFiles::new(3);
    let disk = reopen(&files).unwrap();
    let mut store = LogStore::on(&disk.0, GROUPS[0]);
    block_on(async {
        must_append(&mut store, vec![entry(1, 0)]).await;
        // the witness is written meanwhile
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        files.fail_at(files.operations() + 3, Fault::Device);
        assert!(store.save_snapshot(&snapshot(LogId::new_term_index(1, 0))).await.is_err());
        disk.0.failure().await;
        assert!(store.save_vote(&vote(2)).await.is_err());
        // entries that waited when the log failed were acknowledged by a majority of the others
        store.save_committed(Some(LogId::new_term_index(1, 5))).await.unwrap();
        disk.0.close().await
    });
    drop((store, disk));
    let disk = reopen(&files).unwrap();
    let committed = block_on(LogStore::on(&disk.0, GROUPS[0]).read_committed()).unwrap();
    assert_eq!(committed, None, "the log ends with entry 0")
}

// the power fails at every operation

/// A pseudo-random number below a bound (xorshift).
fn below(random: &mut u64, bound: u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 11) % bound
}

/// The logs after each call, as a store in memory has them.
struct Model {
    stores: Vec<LogStore>,
    /// After each call, the logs of all groups without what is committed.
    history: Vec<Vec<String>>,
    /// The newest call that was acknowledged.
    acknowledged: usize,
}

/// A log as text, without what may be behind the other calls: what is committed, and the name of a snapshot's file.
fn text(store: &LogStore) -> String {
    let log = store.copy();
    let snapshot = log.snapshot.as_ref().map(|noted| noted.meta.last_log_id);
    format!("{:?} {:?} {:?} {snapshot:?}", log.vote, log.purged, log.entries)
}

impl Model {
    fn note(&mut self, snapshots: &[Option<LogId>]) {
        let texts = self.stores.iter().zip(snapshots).map(|(store, snapshot)| {
            // a store in memory notes no snapshots
            let text = text(store);
            format!("{} {:?}", text.strip_suffix(" None").unwrap(), snapshot.map(Some))
        });
        self.history.push(texts.collect())
    }
}

/// Makes calls until the power fails or enough are made.
async fn calls(files: &SimulatedFiles, disk: &OpenDisk, model: &mut Model, random: &mut u64) {
    let mut stores = GROUPS.map(|group| LogStore::on(&disk.0, group));
    let mut snapshots: Vec<Option<LogId>> =
        stores.iter().map(|store| store.copy().snapshot.and_then(|noted| noted.meta.last_log_id)).collect();
    let mut waiting: Vec<(usize, Flushed)> = Vec::new();
    for _ in 0..12 {
        if files.is_off() {
            break;
        }
        let at = below(random, GROUPS.len() as u64) as usize;
        let (store, memory) = (&mut stores[at], &mut model.stores[at].clone());
        let log = memory.copy();
        let term = log.vote.map_or(1, |vote| vote.leader_id.term);
        let next = log.last().map_or(0, |last| last.index + 1);
        let mut is_acknowledged = false;
        match below(random, 10) {
            0 => {
                memory.save_vote(&vote(term + 1)).await.unwrap();
                is_acknowledged = store.save_vote(&vote(term + 1)).await.is_ok()
            }
            1 if next > 1 => {
                // never what is committed
                let floor = log.purged.max(log.committed);
                let back = log.range(..).map(|entry| entry.log_id).find(|id| Some(*id) >= floor);
                memory.save_vote(&vote(term + 1)).await.unwrap();
                let _ = store.save_vote(&vote(term + 1)).await;
                model.note(&snapshots);
                memory.truncate_after(back.or(floor)).await.unwrap();
                let _ = store.truncate_after(back.or(floor)).await;
            }
            2 => {
                if let Some(upto) = snapshots[at] {
                    memory.purge(upto).await.unwrap();
                    let _ = store.purge(upto).await;
                }
            }
            3 if log.committed > snapshots[at] => {
                let last = log.committed.unwrap();
                snapshots[at] = Some(last);
                is_acknowledged = store.save_snapshot(&snapshot(last)).await.is_ok()
            }
            4 => {
                // another member installs a snapshot that is ahead, and the log before it goes
                let last = LogId::new_term_index(term, next + 3);
                snapshots[at] = Some(last);
                model.note(&snapshots);
                is_acknowledged = store.save_snapshot(&snapshot(last)).await.is_ok();
                if is_acknowledged {
                    model.acknowledged = model.history.len() - 1
                }
                memory.purge(last).await.unwrap();
                let _ = store.purge(last).await;
                is_acknowledged = false
            }
            5 => {
                if let Some(last) = log.last() {
                    memory.save_committed(Some(last)).await.unwrap();
                    let _ = store.save_committed(Some(last)).await;
                }
            }
            _ => {
                let entries: Vec<LogEntry> =
                    (next..next + 1 + below(random, 4)).map(|index| entry(term, index)).collect();
                let flushed = append(store, entries.clone()).await;
                // a power loss may leave some of them
                for entry in entries {
                    must_append(memory, vec![entry]).await;
                    model.note(&snapshots)
                }
                waiting.push((model.history.len() - 1, flushed))
            }
        }
        model.note(&snapshots);
        if is_acknowledged {
            model.acknowledged = model.history.len() - 1
        }
        if below(random, 2) == 0 {
            for (call, flushed) in waiting.drain(..) {
                if flushed.await.is_ok_and(|flushed| flushed.is_ok()) {
                    model.acknowledged = model.acknowledged.max(call)
                }
            }
        }
    }
    for (call, flushed) in waiting {
        if flushed.await.is_ok_and(|flushed| flushed.is_ok()) {
            model.acknowledged = model.acknowledged.max(call)
        }
    }
}

/// Checks what is in the folder after a power loss, and lets the model go on from there.
fn check(disk: &OpenDisk, model: &mut Model) -> Result<(), String> {
    let stores = GROUPS.map(|group| LogStore::on(&disk.0, group));
    let found: Vec<String> = stores.iter().map(text).collect();
    let Some(at) = model.history.iter().rposition(|texts| *texts == found) else {
        return Err(format!("no moment had these logs: {found:#?}"));
    };
    if at < model.acknowledged {
        return Err(format!(
            "call {} was acknowledged, and the logs are those of call {at}",
            model.acknowledged
        ));
    }
    for (store, memory) in stores.iter().zip(&model.stores) {
        let log = store.copy();
        if log.committed > memory.copy().committed {
            return Err("more is committed than was".to_string());
        }
        if let Some(noted) = &log.snapshot {
            let read = store.take_snapshot().ok_or("a snapshot was not read")?;
            let expected = snapshot(noted.meta.last_log_id.unwrap());
            if read.snapshot != expected.snapshot || read.meta != expected.meta {
                return Err("a snapshot is another one".to_string());
            }
        }
    }
    model.stores = stores.iter().map(LogStore::in_memory).collect();
    (model.history, model.acknowledged) = (vec![found], 0);
    Ok(())
}

/// Number of runs that ended with a checkpoint in the folder.
static CHECKPOINTS: AtomicU64 = AtomicU64::new(0);

/// A fault of the files.
#[derive(Clone, Copy, PartialEq)]
enum Broken {
    Nothing,
    Syncs,
    FolderSyncs,
}

/// Lives of a hive until operation `at`, at which the power fails, and one more after it. Returns whether it has failed.
fn power_fails_at(seed: u64, at: u64, broken: Broken) -> Result<bool, String> {
    let files = SimulatedFiles::new(seed ^ at << 20);
    files.fail_at(at, Fault::PowerLoss);
    files.drop_syncs(broken == Broken::Syncs);
    files.drop_folder_syncs(broken == Broken::FolderSyncs);
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut model =
        Model { stores: GROUPS.map(|_| LogStore::default()).into(), history: Vec::new(), acknowledged: 0 };
    model.note(&[None, None]);
    let lives = |model: &mut Model, random: &mut u64| {
        for _ in 0..4 {
            let disk = match reopen(&files) {
                Ok(disk) => disk,
                Err(_) if files.is_off() => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            block_on(async {
                calls(&files, &disk, model, random).await;
                disk.0.close().await
            })
        }
        Ok(())
    };
    lives(&mut model, &mut random)?;
    let has_failed = files.is_off();
    files.power_off();
    files.power_on();
    // the power may fail again while the folder is being opened
    files.fail_at(files.operations() + 1 + below(&mut random, 40), Fault::PowerLoss);
    if let Ok(disk) = reopen(&files) {
        // its threads may not go on behind the power loss
        block_on(disk.0.close())
    }
    files.power_off();
    files.power_on();

    let disk = reopen(&files).map_err(|error| error.to_string())?;
    check(&disk, &mut model)?;
    // what the crash has left is repaired, so that the next start accepts it, too
    block_on(async {
        calls(&files, &disk, &mut model, &mut random).await;
        disk.0.close().await
    });
    let disk = reopen(&files).map_err(|error| format!("the second start: {error}"))?;
    check(&disk, &mut model)?;
    block_on(disk.0.close());
    let names = files.list(Path::new(FOLDER)).map_err(|error| error.to_string())?;
    let has_checkpoint = names.iter().any(|name| name.starts_with("checkpoint-"));
    CHECKPOINTS.fetch_add(has_checkpoint.into(), Ordering::Relaxed);
    Ok(has_failed)
}

fn matrix(seed: u64, broken: Broken) -> Result<u64, String> {
    let mut at = 1;
    while power_fails_at(seed, at, broken).map_err(|why| format!("seed {seed}, operation {at}: {why}"))? {
        at += 1
    }
    Ok(at)
}

#[test]
fn a_power_loss_at_any_operation_leaves_what_some_moment_had_and_all_that_was_acknowledged() {
    for seed in 1..=2 {
        let operations = matrix(seed, Broken::Nothing).unwrap();
        assert!(operations > 100, "{operations}")
    }
    assert!(CHECKPOINTS.load(Ordering::Relaxed) > 100, "hardly a checkpoint was made")
}

#[test]
fn the_check_notices_syncs_that_do_nothing() {
    assert!((1..=4).any(|seed| matrix(seed, Broken::Syncs).is_err()));
    assert!((1..=4).any(|seed| matrix(seed, Broken::FolderSyncs).is_err()))
}
