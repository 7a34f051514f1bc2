//! A folder and the names of the files in it.

use crate::files::{AppendFile, Files};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the files of a hive are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) folder: PathBuf,
}

/// The ending of a file that is not finished. Such files are removed at the next start.
const UNFINISHED: &str = ".unfinished";

const SEGMENT: &str = "log-";
const CHECKPOINT: &str = "checkpoint-";

pub(crate) fn identity(folder: &Path) -> PathBuf {
    folder.join("identity")
}

pub(crate) fn lock(folder: &Path) -> PathBuf {
    folder.join("lock")
}

pub(crate) fn witness(folder: &Path) -> PathBuf {
    folder.join("witness")
}

pub(crate) fn segment(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{SEGMENT}{number:020}"))
}

pub(crate) fn checkpoint(folder: &Path, segment: u64) -> PathBuf {
    folder.join(format!("{CHECKPOINT}{segment:020}"))
}

/// The files in a folder, by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The numbers of the segments, in order.
    pub(crate) segments: Vec<u64>,
    /// The numbers of the checkpoints, in order: each covers all segments before this one.
    pub(crate) checkpoints: Vec<u64>,
    /// Files that a crash left behind.
    pub(crate) unfinished: Vec<PathBuf>,
    /// The names of files that are not the hive's.
    pub(crate) foreign: Vec<String>,
    pub(crate) has_witness: bool,
}

impl Place {
    pub(crate) fn list(&self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for name in self.files.list(&self.folder)? {
            let number = |prefix: &str| {
                let digits = name.strip_prefix(prefix).filter(|digits| digits.len() == 20)?;
                digits.bytes().all(|digit| digit.is_ascii_digit()).then_some(digits)?.parse::<u64>().ok()
            };
            match (&*name, number(SEGMENT), number(CHECKPOINT)) {
                ("witness", ..) => listing.has_witness = true,
                ("identity" | "lock", ..) => {}
                (_, Some(segment), _) => listing.segments.push(segment),
                (_, _, Some(segment)) => listing.checkpoints.push(segment),
                (name, ..) if name.ends_with(UNFINISHED) => listing.unfinished.push(self.folder.join(name)),
                (name, ..) => listing.foreign.push(name.to_string()),
            }
        }
        Ok(listing)
    }

    /// Begins a file that gets its name only when it is finished.
    pub(crate) fn begin(&self, path: &Path) -> io::Result<(PathBuf, Box<dyn AppendFile>)> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        match self.files.create(&unfinished) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // an earlier attempt failed
                self.files.remove(&unfinished)?;
                Ok((unfinished.clone(), self.files.create(&unfinished)?))
            }
            created => Ok((unfinished, created?)),
        }
    }

    /// Makes a file that was [begun](Place::begin) permanent under its name.
    pub(crate) fn finish(&self, unfinished: &Path, file: &mut dyn AppendFile, path: &Path) -> io::Result<()> {
        file.sync()?;
        self.files.rename(unfinished, path)?;
        self.files.sync_folder(&self.folder)
    }

    /// Creates or replaces a file, in one step, and returns it, open for appending.
    pub(crate) fn write_whole(&self, path: &Path, parts: &[&[u8]]) -> io::Result<Box<dyn AppendFile>> {
        let (unfinished, mut file) = self.begin(path)?;
        let written = parts.iter().try_for_each(|part| file.append(part));
        let finished = written.and_then(|()| self.finish(&unfinished, &mut *file, path));
        if let Err(error) = finished {
            // if this fails as well, the next attempt or the next start removes the file
            let _ = self.files.remove(&unfinished);
            return Err(error);
        }
        Ok(file)
    }
}
