//! A file system in memory that knows what has been synced, and fails on demand.

use crate::files::{AppendFile, FileLock, Files};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device reports an error. An append may have written a part of its bytes. A sync forgets what it should have
    /// written: the content can still be read, but does not outlive a power loss.
    Device,
    /// The device is full. An append may have written a part of its bytes.
    NoSpace,
    /// The power fails during the operation. From then on, every operation fails, until
    /// [`SimulatedFiles::power_on`].
    PowerLoss,
}

/// A change of the names in a folder that has not been synced.
#[derive(Clone, Debug)]
enum NameChange {
    Add(PathBuf, usize),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl NameChange {
    fn folder(&self) -> Option<&Path> {
        match self {
            NameChange::Add(path, _) | NameChange::Remove(path) | NameChange::Rename(path, _) => {
                path.parent()
            }
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            NameChange::Add(path, file) => {
                names.insert(path.clone(), *file);
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
            NameChange::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
        }
    }
}

/// The content of a file: as programs read it, and as it is on the device.
#[derive(Clone, Debug, Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// The number of bytes at the front in which the two are the same.
    same: usize,
    /// Bytes that a failed sync has forgotten: later syncs do not write them.
    forgotten: Vec<std::ops::Range<usize>>,
}

impl Content {
    fn sync(&mut self) {
        self.synced.truncate(self.same);
        self.synced.extend_from_slice(&self.now[self.same..]);
        for forgotten in &self.forgotten {
            self.synced[forgotten.clone()].fill(0)
        }
        self.same = self.now.len()
    }

    fn forget(&mut self) {
        self.forgotten.push(self.same..self.now.len());
        self.same = self.now.len();
        self.synced.resize(self.same, 0)
    }

    fn truncate(&mut self, length: usize) {
        self.now.truncate(length);
        self.same = self.same.min(self.now.len());
        self.forgotten.iter_mut().for_each(|forgotten| forgotten.end = forgotten.end.min(length));
        self.forgotten.retain(|forgotten| !forgotten.is_empty())
    }
}

#[derive(Debug, Default)]
struct State {
    folders: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, usize>,
    synced_names: BTreeMap<PathBuf, usize>,
    changes: Vec<NameChange>,
    contents: Vec<Content>,
    locks: BTreeSet<PathBuf>,
    /// Number of operations so far.
    operations: u64,
    /// The fault of an operation, by its number.
    faults: BTreeMap<u64, Fault>,
    /// Whether the power is off.
    is_off: bool,
    /// Incremented when the power comes back. Files and locks of an earlier boot are useless.
    boot: u64,
    /// Number of bytes that the device can hold.
    capacity: Option<usize>,
    /// Whether syncs of files only pretend to sync.
    drops_syncs: bool,
    /// Whether syncs of folders only pretend to sync.
    drops_folder_syncs: bool,
    /// How long a sync of a file takes.
    sync_time: Duration,
    random: u64,
}

impl State {
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        // the low bits of a xorshift are weak
        (self.random >> 11) % bound.max(1)
    }

    /// Counts an operation, and returns how it fails.
    fn begin(&mut self) -> io::Result<Option<Fault>> {
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        self.operations += 1;
        let fault = self.faults.remove(&self.operations);
        self.is_off |= fault == Some(Fault::PowerLoss);
        Ok(fault)
    }

    /// Same as [`State::begin`], for an operation that has no partial effect when it fails.
    fn begin_whole(&mut self) -> io::Result<()> {
        self.begin()?.map_or(Ok(()), |fault| Err(error(fault)))
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::Error::from(ErrorKind::NotFound))
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.changes.push(change)
    }
}

fn error(fault: Fault) -> io::Error {
    match fault {
        Fault::Device => io::Error::from_raw_os_error(5),
        Fault::NoSpace => io::Error::from(ErrorKind::StorageFull),
        Fault::PowerLoss => io::Error::other("the power fails"),
    }
}

/// A file system in memory. After a power loss, it has what was synced, and a random part of the rest: of each file the
/// bytes up to a random one, possibly with blocks that were never written, and the first few of the changes of names.
///
/// Clones share their files. The same seed and the same operations give the same result.
#[derive(Clone, Debug)]
pub struct SimulatedFiles(Arc<Mutex<State>>);

impl SimulatedFiles {
    /// Creates an empty file system.
    pub fn new(seed: u64) -> SimulatedFiles {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        SimulatedFiles(Arc::new(Mutex::new(State { random, ..State::default() })))
    }

    /// Returns the number of operations so far.
    pub fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// Makes operation number `at` fail, counted from 1.
    pub fn fail_at(&self, at: u64, fault: Fault) {
        self.0.lock().faults.insert(at, fault);
    }

    /// Bounds the number of bytes in all files together.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.0.lock().capacity = bytes
    }

    /// Returns the number of bytes in all files together.
    pub fn used(&self) -> usize {
        let state = self.0.lock();
        state.names.values().map(|file| state.contents[*file].now.len()).sum()
    }

    /// Makes all further syncs of files report success and do nothing.
    pub fn drop_syncs(&self, drops: bool) {
        self.0.lock().drops_syncs = drops
    }

    /// Makes each further sync of a file take this long.
    pub fn set_sync_time(&self, time: Duration) {
        self.0.lock().sync_time = time
    }

    /// Makes all further syncs of folders report success and do nothing.
    pub fn drop_folder_syncs(&self, drops: bool) {
        self.0.lock().drops_folder_syncs = drops
    }

    /// Switches the power off, if it is not off already. Every operation fails until [`SimulatedFiles::power_on`].
    pub fn power_off(&self) {
        self.0.lock().is_off = true
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.0.lock().is_off
    }

    /// Switches the power on again. Files, locks and faults of the time before are gone.
    pub fn power_on(&self) {
        const BLOCK: usize = 512;
        let mut state = self.0.lock();
        let count = state.changes.len() as u64;
        let kept = state.below(count + 1) as usize;
        let changes = std::mem::take(&mut state.changes);
        let mut names = std::mem::take(&mut state.synced_names);
        changes[..kept].iter().for_each(|change| change.apply(&mut names));

        for file in 0..state.contents.len() {
            let mut content = std::mem::take(&mut state.contents[file]);
            let (same, rest) = (content.same, content.now.len() - content.same);
            let is_old = content.synced.len() > same && state.below(2) == 0;
            if !is_old {
                let more = state.below(rest as u64 + 1) as usize;
                let has_holes = state.below(3) == 0;
                content.synced.truncate(same);
                let new = content.now[same..same + more].to_vec();
                for block in new.chunks(BLOCK) {
                    let is_hole = has_holes && state.below(2) == 0;
                    let zeros = vec![0; if is_hole { block.len() } else { 0 }];
                    content.synced.extend_from_slice(if is_hole { &zeros } else { block })
                }
            }
            content.now.clone_from(&content.synced);
            content.same = content.now.len();
            content.forgotten.clear();
            state.contents[file] = content
        }

        state.names.clone_from(&names);
        state.synced_names = names;
        state.locks.clear();
        state.faults.clear();
        state.is_off = false;
        state.boot += 1
    }

    /// Returns the content of a file.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.0.lock();
        state.names.get(path).map(|file| state.contents[*file].now.clone())
    }

    /// Replaces the content of a file, and syncs it, without counting as an operation.
    pub fn set_content(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.0.lock();
        let file = state.contents.len();
        state.contents.push(Content {
            same: bytes.len(),
            synced: bytes.clone(),
            now: bytes,
            ..Content::default()
        });
        state.names.insert(path.to_path_buf(), file);
        state.synced_names.insert(path.to_path_buf(), file);
    }

    /// Returns a copy that shares nothing with this file system, without its locks and faults.
    #[must_use]
    pub fn copy(&self) -> SimulatedFiles {
        let state = self.0.lock();
        SimulatedFiles(Arc::new(Mutex::new(State {
            folders: state.folders.clone(),
            names: state.names.clone(),
            synced_names: state.synced_names.clone(),
            changes: state.changes.clone(),
            contents: state.contents.clone(),
            random: state.random,
            ..State::default()
        })))
    }
}

impl Files for SimulatedFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let mut state = self.0.lock();
        state.begin_whole()?;
        if state.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let file = state.contents.len();
        state.contents.push(Content::default());
        state.change(NameChange::Add(path.to_path_buf(), file));
        Ok(Box::new(SimulatedFile { files: self.clone(), file, boot: state.boot }))
    }

    fn read(&self, path: &Path, offset: u64, length_max: usize) -> io::Result<Vec<u8>> {
        let mut state = self.0.lock();
        state.begin_whole()?;
        let content = &state.contents[state.file(path)?].now;
        let start = content.len().min(offset as usize);
        let end = content.len().min(start.saturating_add(length_max));
        Ok(content[start..end].to_vec())
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.0.lock();
        state.begin_whole()?;
        Ok(state.contents[state.file(path)?].now.len() as u64)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut state = self.0.lock();
        state.begin_whole()?;
        let inside = state.names.keys().filter(|path| path.parent() == Some(folder));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.begin_whole()?;
        state.folders.insert(folder.to_path_buf());
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let fault = state.begin()?;
        let is_done = match fault {
            Some(Fault::PowerLoss) => state.below(2) == 0,
            Some(_) => false,
            None => !state.drops_folder_syncs,
        };
        if is_done {
            let inside = |change: &mut NameChange| change.folder() == Some(folder);
            let changes: Vec<NameChange> = state.changes.extract_if(.., inside).collect();
            changes.iter().for_each(|change| change.apply(&mut state.synced_names))
        }
        fault.map_or(Ok(()), |fault| Err(error(fault)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.begin_whole()?;
        state.file(from)?;
        state.change(NameChange::Rename(from.to_path_buf(), to.to_path_buf()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.begin_whole()?;
        state.file(path)?;
        state.change(NameChange::Remove(path.to_path_buf()));
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let mut state = self.0.lock();
        state.begin_whole()?;
        let is_new = state.locks.insert(path.to_path_buf());
        let lock = SimulatedLock { files: self.clone(), path: path.to_path_buf(), boot: state.boot };
        drop(state);
        Ok(if is_new {
            Some(Box::new(lock))
        } else {
            // dropped, it would unlock what another one has locked
            std::mem::forget(lock);
            None
        })
    }
}

/// An open file. It is useless once the power has failed.
#[derive(Debug)]
struct SimulatedFile {
    files: SimulatedFiles,
    file: usize,
    boot: u64,
}

impl SimulatedFile {
    fn begin<'a>(&self, state: &'a mut State) -> io::Result<(&'a mut State, Option<Fault>)> {
        if state.boot != self.boot {
            return Err(io::Error::other("the power has failed"));
        }
        let fault = state.begin()?;
        Ok((state, fault))
    }
}

impl AppendFile for SimulatedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.files.0.lock();
        let (state, fault) = self.begin(&mut state)?;
        let used: usize = state.names.values().map(|file| state.contents[*file].now.len()).sum();
        let free = state.capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(used));
        let fault = fault.or((free < bytes.len()).then_some(Fault::NoSpace));
        let written = match fault {
            None => bytes.len(),
            Some(_) => (state.below(bytes.len() as u64 + 1) as usize).min(free),
        };
        state.contents[self.file].now.extend_from_slice(&bytes[..written]);
        fault.map_or(Ok(()), |fault| Err(error(fault)))
    }

    fn sync(&mut self) -> io::Result<()> {
        let time = self.files.0.lock().sync_time;
        if !time.is_zero() {
            #[expect(
                clippy::disallowed_methods,
                reason = "a slow disk holds up the thread that writes to it"
            )]
            std::thread::sleep(time)
        }
        let mut state = self.files.0.lock();
        let (state, fault) = self.begin(&mut state)?;
        let is_done = match fault {
            Some(Fault::PowerLoss) => state.below(2) == 0,
            Some(_) => false,
            None => !state.drops_syncs,
        };
        match fault {
            _ if is_done => state.contents[self.file].sync(),
            Some(Fault::Device) => state.contents[self.file].forget(),
            _ => {}
        }
        fault.map_or(Ok(()), |fault| Err(error(fault)))
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.files.0.lock();
        let (state, fault) = self.begin(&mut state)?;
        fault.map_or(Ok(()), |fault| Err(error(fault)))?;
        state.contents[self.file].truncate(length as usize);
        Ok(())
    }
}

/// A lock. The power loss that ends the program ends the lock, too.
#[derive(Debug)]
struct SimulatedLock {
    files: SimulatedFiles,
    path: PathBuf,
    boot: u64,
}

impl FileLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.files.0.lock();
        if state.boot == self.boot {
            state.locks.remove(&self.path);
        }
    }
}
