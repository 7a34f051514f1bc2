//! Hives with folders end, and return.

use crate::hives::{ALL, Counted, Hives, Ledger, PATIENCE, until};
use beehive::{Builder, HiveId};
use beehive_raft::OpenError;
use beehive_raft::cluster::{ClusterError, ClusterOptions};
use beehive_raft::files::{Fault, SimulatedFiles};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The disks of three hives.
#[derive(Clone)]
pub(crate) struct Disks(Arc<[Mutex<SimulatedFiles>; 3]>);

impl Disks {
    pub(crate) fn new(seed: u64) -> Disks {
        Disks(Arc::new([0, 1, 2].map(|hive| Mutex::new(SimulatedFiles::new(seed * 3 + hive)))))
    }

    pub(crate) fn of(&self, hive: usize) -> SimulatedFiles {
        self.0[hive].lock().unwrap().clone()
    }

    /// Lets a hive use its disk. Segments are short, so that there are checkpoints.
    pub(crate) fn use_in(&self, options: &mut ClusterOptions) {
        options.folder = Some(PathBuf::from("/hive"));
        options.files = Arc::new(self.of(options.hive.0 as usize));
        (options.segment_bytes, options.checkpoint_after_bytes) = (4 << 10, 16 << 10);
        (options.snapshot_after, options.entries_kept) = (50, 10)
    }

    fn start(&self) -> Hives {
        let disks = self.clone();
        Hives::with(move |options| disks.use_in(options))
    }

    /// A hive gets an empty disk. Returns the one that it had.
    pub(crate) fn replace(&self, hive: usize, seed: u64) -> SimulatedFiles {
        std::mem::replace(&mut *self.0[hive].lock().unwrap(), SimulatedFiles::new(seed))
    }

    /// A hive gets this disk.
    pub(crate) fn put(&self, hive: usize, disk: SimulatedFiles) {
        *self.0[hive].lock().unwrap() = disk
    }

    /// The power of a hive fails: what it has not synced is lost.
    pub(crate) fn power_fails(&self, hives: &mut Hives, hive: usize) {
        self.all_fail(hives, &[hive])
    }

    /// The power of several hives fails at once, before one of them can notice that another one has ended.
    pub(crate) fn all_fail(&self, hives: &mut Hives, which: &[usize]) {
        which.iter().for_each(|hive| self.of(*hive).power_off());
        which.iter().for_each(|hive| hives.kill(*hive));
        // the threads that write must not go on when the power is back: they stand for those of a process that has ended
        std::thread::sleep(Duration::from_millis(100));
        which.iter().for_each(|hive| self.of(*hive).power_on())
    }
}

/// Folders on the disk of the machine. They are removed at the end.
pub(crate) struct Folders(PathBuf);

impl Folders {
    pub(crate) fn new() -> Folders {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Folders(std::env::temp_dir().join(format!("beehive-returns-{}-{number}", std::process::id())))
    }

    fn start(&self) -> Hives {
        let folder = self.0.clone();
        Hives::with(move |options| options.folder = Some(folder.join(options.hive.0.to_string())))
    }

    /// Starts hives with these apps.
    pub(crate) fn start_of(&self, apps: fn() -> Builder) -> Hives {
        let folder = self.0.clone();
        Hives::of(apps, move |options| options.folder = Some(folder.join(options.hive.0.to_string())))
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // fails if a test has failed before it made one
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a hive again. The process that has ended may still hold the lock for a moment, because here it is none.
pub(crate) fn must_start(hives: &mut Hives, hive: usize) {
    until("the hive starts again", || match hives.start_again(hive) {
        Ok(()) => true,
        Err(ClusterError::Folder(OpenError::InUse { .. })) => false,
        Err(error) => panic!("{error}"),
    });
}

pub(crate) fn count(hives: &Hives, ledger: &Ledger, rounds: u64) {
    let running: Vec<usize> = hives.running().collect();
    for round in 0..rounds {
        for key in 0..12 {
            ledger.must_count(hives.hive(running[(key + round) as usize % running.len()]), key)
        }
    }
}

pub(crate) fn incarnation(hives: &Hives, hive: usize, seen_by: usize) -> (u32, bool) {
    let mut found = (0, true);
    hives.member(seen_by).registry().read(&mut |state| {
        if let Some(entry) = state.hive(ALL[hive]) {
            found = (entry.incarnation.0, entry.is_dead())
        }
    });
    found
}

/// A hive ends, the others go on, and it returns: as what it was, and to what it led.
fn returns(mut hives: Hives, end: impl Fn(&mut Hives, usize), hive: usize) {
    let (ledger, other) = (Ledger::default(), (hive + 1) % 3);
    count(&hives, &ledger, 3);
    let led = hives.led_by(hive, other);
    end(&mut hives, hive);
    until("the others lead its colonies", || hives.led_by(hive, other).is_empty());
    count(&hives, &ledger, 3);
    must_start(&mut hives, hive);
    assert_eq!(hives.led_by(hive, hive), led, "it leads what it led");
    let handed_over: u64 = hives.running().map(|hive| hives.member(hive).handed_over()).sum();
    assert!(handed_over > 0, "it has deposed the leaders");
    assert_eq!(incarnation(&hives, hive, hive), (2, false));
    count(&hives, &ledger, 3);
    ledger.check(&hives);
    hives.equal_replicas();

    // with it, there is a majority again
    end(&mut hives, other);
    count(&hives, &ledger, 2);
    ledger.check(&hives);
    hives.equal_replicas();
}

#[test]
fn a_hive_returns_after_a_power_loss() {
    let disks = Disks::new(1);
    returns(disks.start(), |hives, hive| disks.power_fails(hives, hive), 2)
}

#[test]
fn a_hive_returns_to_a_folder_on_the_disk_of_the_machine() {
    let folders = Folders::new();
    returns(folders.start(), Hives::kill, 1)
}

#[test]
fn a_hive_returns_while_another_one_is_down() {
    let disks = Disks::new(8);
    let mut hives = disks.start();
    let ledger = Ledger::default();
    count(&hives, &ledger, 2);
    let led = hives.led_by(2, 0);
    disks.power_fails(&mut hives, 2);
    let leader = |colony: &_| {
        hives.member(0).leaders().iter().find(|(of, _)| of == colony).and_then(|(_, leader)| *leader)
    };
    until("the others lead its colonies", || hives.led_by(2, 0).is_empty());
    assert!(led.iter().any(|colony| leader(colony) == Some(ALL[0])), "the first hive leads none of them");
    disks.power_fails(&mut hives, 1);
    let before = ledger.answered();
    ledger.count(hives.hive(0), 0, Duration::from_millis(300));
    assert_eq!(ledger.answered(), before, "one hive alone has acknowledged an increment");
    // the other hive leads a colony of this one. It hands it over, and is the only one that can vote, although its lease runs
    let begun = Instant::now();
    must_start(&mut hives, 2);
    let took = begun.elapsed();
    println!("a hive returned within {took:?}");
    assert!(took < Duration::from_millis(2_500), "it has waited for the lease: {took:?}");
    count(&hives, &ledger, 2);
    must_start(&mut hives, 1);
    count(&hives, &ledger, 1);
    ledger.check(&hives);
    hives.equal_replicas();
}

/// The logs of a leader that is cut off end with entries that no other hive has. When it returns, it may not go on in its term: it
/// would use the numbers of these entries again.
#[test]
fn a_leader_that_returns_with_entries_of_its_own_leads_a_new_term() {
    for seed in 0..3 {
        let disks = Disks::new(20 + seed);
        let mut hives = disks.start();
        let ledger = Ledger::default();
        count(&hives, &ledger, 2);
        let terms = hives.terms(0);
        hives.net.isolate(ALL[0], &[ALL[1], ALL[2]]);
        for key in 0..12 {
            ledger.count(hives.hive(0), key, Duration::from_millis(8));
        }
        disks.all_fail(&mut hives, &[0, 1, 2]);
        hives.net.heal();
        hives.start_all();
        for ((colony, before, _), (_, after, _)) in terms.iter().zip(hives.terms(0)) {
            assert!(after > *before, "colony {} is led in term {after} again", colony.0)
        }
        count(&hives, &ledger, 2);
        ledger.check(&hives);
        hives.equal_replicas();
    }
}

/// The disk of a leader is slower than those of the others, which have acknowledged entries that it has not written yet. The power of
/// some hives fails, and of this one. When they return, its log is the shortest: it asks in vain to be elected again, and the
/// others must not take it for the leader as long as a lease lasts.
fn the_leader_returns_with_the_shortest_log(seed: u64, failing: &[usize]) {
    let disks = Disks::new(seed);
    let of_hives = disks.clone();
    let mut hives = Hives::with(move |options| {
        of_hives.use_in(options);
        options.lease = Duration::from_secs(12);
        // it returns before it is suspected
        options.suspect_after = Duration::from_secs(3)
    });
    let ledger = Ledger::default();
    count(&hives, &ledger, 2);
    let led = hives.led_by(0, 1);
    let lengths = |hives: &Hives| -> Vec<u64> {
        led.iter().map(|colony| hives.member(0).replica(*colony).unwrap().0).collect()
    };
    let before = lengths(&hives);
    disks.of(0).set_capacity(Some(disks.of(0).used()));
    count(&hives, &ledger, 2);
    assert_eq!(hives.led_by(0, 1), led, "another hive has become the leader");
    assert_ne!(lengths(&hives), before, "nothing was committed that the leader has not written");

    disks.all_fail(&mut hives, failing);
    disks.of(0).set_capacity(None);
    let begun = Instant::now();
    match failing.len() {
        3 => hives.start_all(),
        _ => failing.iter().for_each(|hive| must_start(&mut hives, *hive)),
    }
    count(&hives, &ledger, 1);
    let took = begun.elapsed();
    println!("all was answered again after {took:?}");
    // an election that waits for the lease begins after 8 s at the earliest
    assert!(took < Duration::from_secs(4), "the others have waited for a leader that cannot lead: {took:?}");
    ledger.check(&hives);
    hives.equal_replicas();
}

#[test]
fn hives_that_return_do_not_wait_for_a_leader_with_a_shorter_log() {
    (0..3).for_each(|seed| the_leader_returns_with_the_shortest_log(30 + seed, &[0, 1, 2]))
}

#[test]
fn hives_that_have_gone_on_do_not_wait_for_a_leader_with_a_shorter_log() {
    the_leader_returns_with_the_shortest_log(40, &[0])
}

#[test]
fn the_leader_of_the_registry_returns() {
    let disks = Disks::new(2);
    let hives = disks.start();
    let leader = hives.member(0).registry_leader().unwrap();
    returns(hives, |hives, hive| disks.power_fails(hives, hive), leader.0 as usize)
}

#[test]
fn a_hive_that_was_stopped_returns_at_once() {
    let folders = Folders::new();
    let mut hives = folders.start();
    let ledger = Ledger::default();
    count(&hives, &ledger, 2);
    hives.stop(1);
    hives.start_again(1).unwrap();
    count(&hives, &ledger, 2);
    ledger.check(&hives)
}

#[test]
fn a_hive_that_was_declared_dead_joins_again() {
    let disks = Disks::new(3);
    let of_hives = disks.clone();
    let mut hives = Hives::with(move |options| {
        of_hives.use_in(options);
        options.dead_after = Duration::from_millis(500)
    });
    let ledger = Ledger::default();
    count(&hives, &ledger, 2);
    disks.power_fails(&mut hives, 0);
    until("it is declared dead", || incarnation(&hives, 0, 1) == (1, true));
    count(&hives, &ledger, 2);
    must_start(&mut hives, 0);
    assert_eq!(incarnation(&hives, 0, 0), (2, false));
    count(&hives, &ledger, 2);
    ledger.check(&hives);
    hives.equal_replicas();
}

/// Several threads count, until all hives end at a random moment.
fn all_end(hives: &mut Hives, ledger: &Ledger, after: Duration, end: impl Fn(&mut Hives)) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for at in 0..3 {
            let (hive, ledger, is_over) = (hives.hive(at).clone(), ledger.clone(), &is_over);
            scope.spawn(move || {
                for key in (0..12).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    ledger.count_until(&hive, key, Duration::from_millis(300), is_over);
                }
            });
        }
        std::thread::sleep(after);
        end(hives);
        is_over.store(true, Ordering::Relaxed)
    })
}

#[test]
fn when_the_power_of_all_hives_fails_every_answered_increment_is_there_once() {
    for seed in 1..=4 {
        let disks = Disks::new(seed * 7);
        let mut hives = disks.start();
        let ledger = Ledger::default();
        count(&hives, &ledger, 1);
        for round in 0..2 {
            let before = ledger.answered();
            all_end(&mut hives, &ledger, Duration::from_millis(100 + 37 * seed + 50 * round), |hives| {
                disks.all_fail(hives, &[0, 1, 2])
            });
            assert!(ledger.answered() > before, "nothing was under way");
            hives.start_all();
            ledger.check(&hives);
            count(&hives, &ledger, 1);
            ledger.check(&hives);
            hives.equal_replicas();
        }
    }
}

#[test]
fn when_all_processes_end_every_answered_increment_is_there_once() {
    let folders = Folders::new();
    let mut hives = folders.start();
    let ledger = Ledger::default();
    count(&hives, &ledger, 1);
    all_end(&mut hives, &ledger, Duration::from_millis(300), |hives| {
        (0..3).for_each(|hive| hives.kill(hive))
    });
    // the locks of what stands for processes here
    std::thread::sleep(Duration::from_millis(300));
    hives.start_all();
    ledger.check(&hives);
    count(&hives, &ledger, 2);
    ledger.check(&hives);
    hives.equal_replicas();
}

#[test]
fn an_old_copy_of_a_folder_is_refused() {
    let disks = Disks::new(5);
    let mut hives = disks.start();
    let ledger = Ledger::default();
    count(&hives, &ledger, 2);
    let old = disks.of(2).copy();
    count(&hives, &ledger, 4);
    disks.power_fails(&mut hives, 2);
    let newest = disks.of(2);
    *disks.0[2].lock().unwrap() = old;
    let refused = hives.start_again(2).unwrap_err();
    assert!(matches!(refused, ClusterError::RolledBack { .. }), "{refused}");
    let text = refused.to_string();
    assert!(
        text.contains("the folder is an old copy") && text.contains("never start a hive with a copy"),
        "{text}"
    );

    *disks.0[2].lock().unwrap() = newest;
    must_start(&mut hives, 2);
    count(&hives, &ledger, 1);
    ledger.check(&hives)
}

#[test]
fn an_empty_folder_is_another_life_and_is_refused() {
    let disks = Disks::new(6);
    let mut hives = disks.start();
    count(&hives, &Ledger::default(), 1);
    disks.power_fails(&mut hives, 1);
    *disks.0[1].lock().unwrap() = SimulatedFiles::new(99);
    let refused = hives.start_again(1).unwrap_err();
    assert!(matches!(refused, ClusterError::Forgotten { .. }), "{refused}")
}

#[test]
fn a_hive_whose_disk_fails_stops_and_loses_nothing() {
    let disks = Disks::new(7);
    let mut hives = disks.start();
    let ledger = Ledger::default();
    count(&hives, &ledger, 2);
    let files = disks.of(0);
    // some of them may be those of the witness, without which the log goes on
    let next = files.operations() + 1;
    (next..next + 20).for_each(|at| files.fail_at(at, Fault::Device));
    let mut key = 0;
    until("the others lead its colonies", || {
        key = (key + 1) % 12;
        ledger.count(hives.hive(1), key, Duration::from_millis(500));
        hives.led_by(0, 1).is_empty()
    });
    until("it stops", || {
        hives.hive(0).request_blocking_within(Duration::from_millis(100), Counted(0)).is_err()
    });
    // it works again, without what it has forgotten
    disks.power_fails(&mut hives, 0);
    count(&hives, &ledger, 2);
    ledger.check(&hives);

    must_start(&mut hives, 0);
    count(&hives, &ledger, 1);
    ledger.check(&hives);
    hives.equal_replicas();
}

#[test]
fn a_folder_that_is_used_or_of_another_hive_is_refused() {
    let folders = Folders::new();
    let hives = folders.start();
    let refused = hives.start_another(HiveId(1), |options| options.folder = Some(folders.0.join("1")));
    assert!(matches!(refused, ClusterError::Folder(OpenError::InUse { .. })), "{refused}");
    let refused = hives.start_another(HiveId(1), |options| options.folder = Some(folders.0.join("2")));
    assert!(
        matches!(refused, ClusterError::Folder(OpenError::OtherHive { found: 2, wanted: 1, .. })),
        "{refused}"
    );
    let refused = hives.start_another(HiveId(1), |options| {
        options.folder = Some(folders.0.join("1"));
        options.seed += 1
    });
    assert!(matches!(refused, ClusterError::Folder(OpenError::OtherCluster { .. })), "{refused}");
    let refused = hives.start_another(HiveId(1), |options| {
        options.folder = Some(folders.0.join("1"));
        options.logs += 1
    });
    assert!(matches!(refused, ClusterError::Folder(OpenError::OtherCluster { .. })), "{refused}");
    let refused = beehive_raft::Data::open(folders.0.join("1")).unwrap_err();
    assert!(matches!(refused, OpenError::OfCluster { .. }), "{refused}");
    count(&hives, &Ledger::default(), 1)
}

/// Handing over needs votes, which a full disk does not keep.
#[test]
fn a_hive_with_a_full_disk_stops_and_returns() {
    let disks = Disks::new(50);
    let (mut hives, ledger) = (disks.start(), Ledger::default());
    count(&hives, &ledger, 2);
    disks.of(0).set_capacity(Some(disks.of(0).used()));
    count(&hives, &ledger, 2);
    let (begun, has_stopped) = (Instant::now(), AtomicBool::new(false));
    let took = std::thread::scope(|scope| {
        scope.spawn(|| {
            // if the hive waits for space, the test must end all the same
            while !has_stopped.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(10))
            }
            disks.of(0).set_capacity(None)
        });
        hives.stop(0);
        has_stopped.store(true, Ordering::Relaxed);
        begun.elapsed()
    });
    println!("the hive stopped after {took:?}");
    assert!(took < PATIENCE / 2, "the hive has waited for space: {took:?}");
    must_start(&mut hives, 0);
    count(&hives, &ledger, 1);
    ledger.check(&hives);
    hives.equal_replicas();
}
