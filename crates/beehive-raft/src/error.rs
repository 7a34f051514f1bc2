//! The reasons why a folder cannot be opened, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a folder cannot be opened.
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another part of this one, uses the folder.
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder contains files, but not those of a hive.
    NoHive {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        found: String,
    },
    /// A folder that should become a restored one is not empty.
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        found: String,
    },
    /// The folder belongs to a hive with another number.
    OtherHive {
        /// The folder.
        folder: PathBuf,
        /// The number in the folder.
        found: u32,
        /// The number that was asked for.
        wanted: u32,
    },
    /// The folder belongs to a hive of a cluster, and a hive alone cannot go on from it.
    OfCluster {
        /// The identity of the folder.
        file: PathBuf,
    },
    /// The folder belongs to a hive that is alone, and a cluster cannot go on from it.
    OfOneHive {
        /// The identity of the folder.
        file: PathBuf,
    },
    /// The folder belongs to a hive of another cluster.
    OtherCluster {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        what: String,
    },
    /// The folder was made for another number of logs.
    OtherLogs {
        /// The folder.
        folder: PathBuf,
        /// The number in the folder.
        found: u16,
        /// The number that was asked for.
        wanted: u16,
    },
    /// A hive cannot have this number of logs.
    NumberOfLogs {
        /// The number that was asked for.
        wanted: u16,
    },
    /// A newer program has written the file.
    Newer {
        /// The file.
        file: PathBuf,
        /// The version of its format.
        version: u32,
    },
    /// No higher term is left: the hive was started, and restored, too often.
    NoMoreTerms {
        /// The folder, or the backup.
        file: PathBuf,
    },
    /// The file was copied from the folder of another hive.
    OtherFolder {
        /// The file.
        file: PathBuf,
    },
    /// A file is missing.
    Missing {
        /// The file.
        file: PathBuf,
        /// The reason why the file should exist.
        why: String,
    },
    /// Something that was acknowledged is not as it was written.
    Damaged {
        /// The file.
        file: PathBuf,
        /// The place of the damage, in bytes from the start of the file.
        offset: u64,
        /// A description of the damage.
        what: String,
    },
    /// The system reported an error.
    Io {
        /// The file.
        file: PathBuf,
        /// The operation that failed, such as `read`.
        doing: &'static str,
        /// The error.
        error: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(file: &Path, doing: &'static str, error: io::Error) -> OpenError {
        OpenError::Io { file: file.to_path_buf(), doing, error }
    }

    pub(crate) fn damaged(file: &Path, offset: usize, what: impl Into<String>) -> OpenError {
        OpenError::Damaged { file: file.to_path_buf(), offset: offset as u64, what: what.into() }
    }
}

/// The advice if a file is lost. Without an identity, the other files are of no use.
fn advice(file: &Path) -> &'static str {
    match file.file_name().is_some_and(|name| name == "identity") {
        true => {
            "keep a copy of the folder, and restore the file from a backup: without it, nothing in the folder can be read"
        }
        false => BACKUP,
    }
}

const BACKUP: &str = "keep a copy of the folder, and restore it from a backup; without one, everything up to the damage can be read with \
    `beehive data show`";

/// The advice for an error of the system.
fn remedy(error: io::ErrorKind) -> &'static str {
    match error {
        io::ErrorKind::IsADirectory => {
            "; a folder is where a file of the hive belongs: move it elsewhere, and put the file back if there was one"
        }
        io::ErrorKind::AlreadyExists => "; name another file, or move this one",
        io::ErrorKind::NotADirectory => {
            "; a file is where the folder belongs: name another folder, or move the file"
        }
        io::ErrorKind::PermissionDenied => {
            "; start as the user to whom the folder and its files belong, or give them to this user"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; name a folder on a disk that can be written",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make space, and start again",
        _ => "",
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::InUse { folder } => write!(
                f,
                "{}: the folder is in use; stop the other process, or give this one a folder of its own",
                folder.display()
            ),
            OpenError::NoHive { folder, found } => write!(
                f,
                "{}: the folder contains `{found}`, but no hive; name an empty folder, or one that does not exist",
                folder.display()
            ),
            OpenError::NotEmpty { folder, found } => write!(
                f,
                "{}: the folder contains `{found}`; name an empty folder, or one that does not exist",
                folder.display()
            ),
            OpenError::OtherHive { folder, found, wanted } => write!(
                f,
                "{}: the folder belongs to hive {found}, and this is hive {wanted}; give each hive a folder of its own",
                folder.display()
            ),
            OpenError::OfCluster { file } => write!(
                f,
                "{}: the folder belongs to a hive of a cluster; start it in its cluster, or name another folder",
                file.display()
            ),
            OpenError::OfOneHive { file } => write!(
                f,
                "{}: the folder belongs to a hive that is alone, and a cluster cannot go on from it; name another folder",
                file.display()
            ),
            OpenError::OtherCluster { folder, what } => write!(
                f,
                "{}: the folder belongs to a hive of another cluster: {what}; give each hive of each cluster a folder of its own",
                folder.display()
            ),
            OpenError::OtherLogs { folder, found, wanted } => write!(
                f,
                "{}: the folder has {found} logs, and {wanted} were asked for; open it with {found}",
                folder.display()
            ),
            OpenError::NumberOfLogs { wanted } => {
                write!(f, "a hive has 1 to {} logs, and {wanted} were asked for", crate::limits::LOGS_MAX)
            }
            OpenError::Newer { file, version } => write!(
                f,
                "{}: format version {version} is newer than this program; start the program that wrote it",
                file.display()
            ),
            OpenError::NoMoreTerms { file } => write!(
                f,
                "{}: the hive was started, and restored, too often: it has no higher term left; begin with an empty folder",
                file.display()
            ),
            OpenError::OtherFolder { file } => write!(
                f,
                "{}: the file belongs to another hive; files of two folders must not be mixed: {BACKUP}",
                file.display()
            ),
            OpenError::Missing { file, why } => {
                write!(f, "{}: the file is missing: {why}; {}", file.display(), advice(file))
            }
            OpenError::Damaged { file, offset, what } => {
                write!(f, "{}: damaged at byte {offset}: {what}; {}", file.display(), advice(file))
            }
            OpenError::Io { file, doing, error } => {
                write!(f, "{}: cannot {doing}: {error}{}", file.display(), remedy(error.kind()))
            }
        }
    }
}

beehive_protocol::debug_is_display!(OpenError);

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
