//! The simulated files do what the tests of the log rely on, and agree with the real ones where nothing fails.
#![allow(missing_docs)]

use beehive_raft::files::{Fault, Files, RealFiles, SimulatedFiles};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A new folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn use_all(files: &dyn Files, folder: &Path) {
    files.create_folder(folder).unwrap();
    let path = |name: &str| folder.join(name);
    let mut a = files.create(&path("a")).unwrap();
    assert_eq!(files.create(&path("a")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    a.append(b"one").unwrap();
    a.append(b"two").unwrap();
    a.sync().unwrap();
    assert_eq!(files.read(&path("a"), 0, 100).unwrap(), b"onetwo");
    assert_eq!(files.read(&path("a"), 2, 2).unwrap(), b"et");
    assert_eq!(files.read(&path("a"), 9, 2).unwrap(), b"");
    a.truncate(4).unwrap();
    a.append(b"!").unwrap();
    assert_eq!(files.read(&path("a"), 0, 100).unwrap(), b"onet!");
    assert_eq!(files.length(&path("a")).unwrap(), 5);

    files.create(&path("b")).unwrap();
    assert_eq!(files.list(folder).unwrap(), ["a", "b"]);
    files.rename(&path("a"), &path("b")).unwrap();
    files.sync_folder(folder).unwrap();
    assert_eq!(files.list(folder).unwrap(), ["b"]);
    assert_eq!(files.length(&path("b")).unwrap(), 5);

    let lock = files.lock(&path("lock")).unwrap();
    assert!(lock.is_some() && files.lock(&path("lock")).unwrap().is_none());
    drop(lock);
    assert!(files.lock(&path("lock")).unwrap().is_some());

    files.remove(&path("b")).unwrap();
    assert_eq!(files.read(&path("b"), 0, 1).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn real_and_simulated_files_do_the_same() {
    use_all(&RealFiles, &folder("same").join("deep/er"));
    use_all(&SimulatedFiles::new(1), Path::new("/data"));
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_real_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("private");
    RealFiles.create_folder(&folder).unwrap();
    RealFiles.create(&folder.join("a")).unwrap();
    RealFiles.lock(&folder.join("lock")).unwrap();
    for path in [folder.clone(), folder.join("a"), folder.join("lock")] {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path:?} has mode {mode:o}");
    }
}

/// Writes `first` synced and `second` not, then switches the power off and on. Returns what is left.
fn left_after(seed: u64, syncs_folder: bool, drops: bool) -> Option<Vec<u8>> {
    let files = SimulatedFiles::new(seed);
    files.drop_syncs(drops);
    files.drop_folder_syncs(drops);
    let path = Path::new("/data/a");
    let mut file = files.create(path).unwrap();
    if syncs_folder {
        files.sync_folder(Path::new("/data")).unwrap()
    }
    file.append(b"first").unwrap();
    file.sync().unwrap();
    file.append(b"second").unwrap();
    files.power_off();
    assert!(file.append(b"third").is_err() && files.read(path, 0, 1).is_err());
    files.power_on();
    assert!(file.append(b"fourth").is_err(), "the file was opened before the power loss");
    files.content(path)
}

#[test]
fn a_power_loss_takes_a_random_part_of_what_was_not_synced() {
    let left: BTreeSet<_> = (0..400).map(|seed| left_after(seed, true, false).unwrap()).collect();
    let whole = b"firstsecond";
    assert!((5..=11).all(|length| left.contains(&whole[..length])), "cut at any byte: {left:?}");
    assert!(left.iter().all(|content| content.starts_with(b"first")), "{left:?}");
    assert!(left.iter().any(|content| content.contains(&0)), "a block was never written");

    let names: BTreeSet<_> = (0..50).map(|seed| left_after(seed, false, false).is_some()).collect();
    assert_eq!(names.len(), 2, "a name that was not synced may be lost, or not");
    let dropped: BTreeSet<_> = (0..400).map(|seed| left_after(seed, true, true)).collect();
    assert!(dropped.contains(&None) && dropped.contains(&Some(Vec::new())), "{dropped:?}");
    assert_eq!(left_after(7, true, false), left_after(7, true, false), "the same seed gives the same result");
}

#[test]
fn the_chosen_operation_fails() {
    let files = SimulatedFiles::new(3);
    let path = Path::new("/data/a");
    let mut file = files.create(path).unwrap();
    files.sync_folder(Path::new("/data")).unwrap();
    let next = |fault| files.fail_at(files.operations() + 1, fault);

    next(Fault::NoSpace);
    assert_eq!(file.append(b"0123456789").unwrap_err().kind(), ErrorKind::StorageFull);
    file.truncate(0).unwrap();
    file.append(b"kept").unwrap();
    next(Fault::Device);
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(5));
    assert_eq!(files.content(path).unwrap(), b"kept", "it can still be read");
    file.sync().unwrap();
    let lost = files.copy();
    lost.power_on();
    assert_eq!(lost.content(path).unwrap(), [0; 4], "but the device never got it");
    next(Fault::Device);
    assert_eq!(files.read(path, 0, 1).unwrap_err().raw_os_error(), Some(5));

    files.set_capacity(Some(6));
    assert_eq!(file.append(b"more").unwrap_err().kind(), ErrorKind::StorageFull);
    assert!(files.used() <= 6);
    files.set_capacity(None);
    file.append(b"more").unwrap();

    next(Fault::PowerLoss);
    assert!(file.sync().is_err() && files.is_off());
    assert!(files.list(Path::new("/data")).is_err());
}
