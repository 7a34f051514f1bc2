//! The file system of the machine.

use crate::files::{AppendFile, FileLock, Files};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The file system of the machine, through `std::fs`. On Unix, only the user who runs the program can read the files and
/// folders that it creates, because state and settings may contain secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(RealFile(private().append(true).create_new(true).open(path)?)))
    }

    fn read(&self, path: &Path, offset: u64, length_max: usize) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len().saturating_sub(offset).min(length_max as u64);
        file.seek(SeekFrom::Start(offset))?;

        let mut bytes = Vec::with_capacity(length as usize);
        file.take(length_max as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let mut names = fs::read_dir(folder)?.map(name).collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let parent = match folder.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        self.create_folder(parent)?;
        let mut private = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
        match private.create(folder) {
            // another process was faster
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created,
        }?;
        self.sync_folder(parent)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let file = private().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(RealLock(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Returns options that let nobody else read a file that is created with them.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file of the machine.
#[derive(Debug)]
struct RealFile(File);

impl AppendFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        // also writes the length of the file
        self.0.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }
}

/// A locked file.
#[derive(Debug)]
struct RealLock(File);

impl FileLock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // Closing the file is not enough. If another thread starts a process at this moment, the process has a copy of the
        // open file until it executes its program, and the copy would keep the lock. If this fails, closing has to do.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_although_a_process_that_is_being_started_still_has_the_file() {
        let path = std::env::temp_dir().join(format!("beehive-lock-{}", std::process::id()));
        let file = private().write(true).create(true).truncate(false).open(&path).expect("a file");
        file.try_lock().expect("nobody has locked it");
        // what a process has between `fork` and `exec`: the same open file
        let copy = file.try_clone().expect("a copy");
        let lock = RealLock(file);
        assert!(RealFiles.lock(&path).expect("it can be asked").is_none(), "it is locked");
        drop(lock);
        assert!(RealFiles.lock(&path).expect("it can be asked").is_some(), "it is still locked");
        drop(copy);
        fs::remove_file(&path).expect("it is there")
    }
}
