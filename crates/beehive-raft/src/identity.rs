//! The identity of a folder: which hive it belongs to, and what must be the same at every start.
//!
//! The apps and the shapes of their dictionaries are in the log itself, which the hive checks when it starts.

use crate::error::OpenError;
use crate::limits;
use crate::log::format::FORMAT;
use crate::place::{self, Place};
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The start of the identity of a hive that is alone.
pub(crate) const FIRST_LINE: &str = "beehive data, format ";

/// The start of the identity of a hive of a cluster.
pub(crate) const OF_CLUSTER: &str = "beehive cluster data, format ";

/// The reason why an identity is refused that is damaged.
pub(crate) const NOT_AS_WRITTEN: &str = "it is not as it was written";

/// Returns the text of an identity file, without the line of its checksum.
///
/// # Errors
///
/// Returns an error if the checksum is wrong.
pub(crate) fn checked<'a>(bytes: &'a [u8], path: &Path) -> Result<&'a str, OpenError> {
    let text = std::str::from_utf8(bytes).ok().and_then(|text| text.rsplit_once("checksum "));
    match text {
        Some((content, checksum)) if checksum == format!("{:016x}\n", xxh3_64(content.as_bytes())) => {
            Ok(content)
        }
        _ => Err(OpenError::damaged(path, 0, NOT_AS_WRITTEN)),
    }
}

/// Adds the line of the checksum to the text of an identity file.
pub(crate) fn with_checksum(text: String) -> String {
    let checksum = xxh3_64(text.as_bytes());
    text + &format!("checksum {checksum:016x}\n")
}

/// The contents of a folder's identity file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A random number, which is in every file of the folder.
    pub folder_id: u64,
    /// The number of the hive in its cluster.
    pub hive: u32,
    /// The seed for cell ids.
    pub seed: u64,
    /// Number of logs.
    pub logs: u16,
    /// Number of starts so far, which is also the term of the last one.
    pub incarnation: u64,
}

impl Identity {
    /// A longer file is no identity.
    pub(crate) const LENGTH_MAX: usize = 4096;

    /// Reads the identity of a folder. Returns `None` if it has none.
    pub(crate) fn read(place: &Place) -> Result<Option<Identity>, OpenError> {
        let path = place::identity(&place.folder);
        let bytes = match place.files.read(&path, 0, Identity::LENGTH_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::io(&path, "read", error)),
        };
        Identity::parse(&bytes, &path).map(Some)
    }

    /// Reads the content of an identity file.
    pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Identity, OpenError> {
        let damaged = || OpenError::damaged(path, 0, NOT_AS_WRITTEN);
        let content = checked(bytes, path)?;
        if content.starts_with(OF_CLUSTER) {
            return Err(OpenError::OfCluster { file: path.to_path_buf() });
        }
        let mut lines = content.lines();
        let first = lines.next().and_then(|line| line.strip_prefix(FIRST_LINE)).ok_or_else(damaged)?;
        let version = first.parse().map_err(|_| damaged())?;
        if version != FORMAT {
            return Err(OpenError::Newer { file: path.to_path_buf(), version });
        }
        let mut value = |name: &str, radix| {
            let value = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.and_then(|value| u64::from_str_radix(value, radix).ok()).ok_or_else(damaged)
        };
        Ok(Identity {
            folder_id: value("folder", 16)?,
            hive: u32::try_from(value("hive", 10)?).map_err(|_| damaged())?,
            seed: value("seed", 16)?,
            logs: u16::try_from(value("logs", 10)?)
                .ok()
                .filter(|logs| (1..=limits::LOGS_MAX).contains(logs))
                .ok_or_else(damaged)?,
            incarnation: value("incarnation", 10)?,
        })
    }

    /// Returns the content of the identity file.
    pub(crate) fn text(&self) -> String {
        let Identity { folder_id, hive, seed, logs, incarnation } = self;
        with_checksum(format!(
            "{FIRST_LINE}{FORMAT}\nfolder {folder_id:016x}\nhive {hive}\nseed {seed:016x}\nlogs {logs}\nincarnation {incarnation}\n"
        ))
    }

    /// Writes the identity, in one step.
    pub(crate) fn write(&self, place: &Place) -> Result<(), OpenError> {
        let path = place::identity(&place.folder);
        let written = place.write_whole(&path, &[self.text().as_bytes()]);
        written.map(drop).map_err(|error| OpenError::io(&path, "write", error))
    }
}
