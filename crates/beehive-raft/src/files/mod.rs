//! The files that this crate uses, as a trait, so that tests can lose, tear and refuse what is written.
//!
//! The trait has what an append-only store needs, and nothing else: no file is changed in place. [`RealFiles`] is the
//! file system of the machine. `SimulatedFiles` (feature `testing`) is a file system in memory that knows what has
//! been synced.

mod real;
#[cfg(feature = "testing")]
mod simulated;

pub use real::RealFiles;
#[cfg(feature = "testing")]
pub use simulated::{Fault, SimulatedFiles};

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// A file system.
pub trait Files: Debug + Send + Sync + 'static {
    /// Creates a file, and opens it for appending. Fails if the file exists. Whether the new name outlives a power loss
    /// is certain only after [`Files::sync_folder`].
    fn create(&self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    /// Reads up to `length_max` bytes from `offset` on. Fewer bytes mean that the file ends there.
    fn read(&self, path: &Path, offset: u64, length_max: usize) -> io::Result<Vec<u8>>;
    /// Returns the length of a file in bytes.
    fn length(&self, path: &Path) -> io::Result<u64>;
    /// Returns the names of the files and folders in a folder, in order.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// Creates a folder, and those above it, and syncs the folders that contain the new ones.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;
    /// Makes the names in a folder permanent: files created, renamed and removed there.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Renames a file within its folder. An existing file of that name is replaced, in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Locks a file, which is created if it does not exist. Returns `None` if it is already locked, by this or another
    /// process. The lock ends when the returned value is dropped, or the process ends.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>>;
}

/// A file that is open for appending.
pub trait AppendFile: Debug + Send + 'static {
    /// Appends bytes. After an error, a part of them may be in the file.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content permanent. After an error, nobody knows which part of the content is: a system may report the
    /// failure only once, and forget what it could not write.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file off after `length` bytes.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// A lock on a file, until it is dropped.
pub trait FileLock: Debug + Send + Sync + 'static {}
