//! The identity of a folder: which hive of which cluster it belongs to, and which life of it.

use crate::cluster::options::ClusterOptions;
use crate::error::OpenError;
use crate::identity::{FIRST_LINE, NOT_AS_WRITTEN, OF_CLUSTER, checked, with_checksum};
use crate::log::format::FORMAT;
use crate::place::{self, Place};
use beehive_core::HiveId;
use std::io;
use std::path::Path;

/// A longer file is no identity. There is room for the numbers of some thousand hives.
const LENGTH_MAX: usize = 64 << 10;

/// The contents of a folder's identity file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// A random number, which is in every file of the folder.
    pub(crate) folder_id: u64,
    pub(crate) hive: HiveId,
    /// The seed for cell ids.
    pub(crate) seed: u64,
    /// Number of colonies that each hive leads at first.
    pub(crate) logs: u32,
    /// All hives of the cluster, in ascending order.
    pub(crate) hives: Vec<HiveId>,
    /// The life of the hive: a random number, by which the groups know it.
    pub(crate) life: u64,
    /// Number of starts so far.
    pub(crate) starts: u64,
}

impl Identity {
    /// Reads the identity of a folder. Returns `None` if it has none.
    pub(crate) fn read(place: &Place) -> Result<Option<Identity>, OpenError> {
        let path = place::identity(&place.folder);
        let bytes = match place.files.read(&path, 0, LENGTH_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::io(&path, "read", error)),
        };
        Identity::parse(&bytes, &path).map(Some)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Identity, OpenError> {
        let damaged = || OpenError::damaged(path, 0, NOT_AS_WRITTEN);
        let content = checked(bytes, path)?;
        if content.starts_with(FIRST_LINE) {
            return Err(OpenError::OfOneHive { file: path.to_path_buf() });
        }

        let mut lines = content.lines();
        let version = lines.next().and_then(|line| line.strip_prefix(OF_CLUSTER)?.parse().ok());
        match version.ok_or_else(damaged)? {
            FORMAT => {}
            version => return Err(OpenError::Newer { file: path.to_path_buf(), version }),
        }
        let mut line = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.ok_or_else(damaged)
        };
        let number = |text: &str, radix| u64::from_str_radix(text, radix).map_err(|_| damaged());
        let hive = |text: &str| text.parse().map(HiveId).map_err(|_| damaged());
        Ok(Identity {
            folder_id: number(line("folder")?, 16)?,
            hive: hive(line("hive")?)?,
            seed: number(line("seed")?, 16)?,
            logs: line("logs")?.parse().map_err(|_| damaged())?,
            hives: line("hives")?.split(' ').map(hive).collect::<Result<_, _>>()?,
            life: number(line("life")?, 16)?,
            starts: number(line("starts")?, 10)?,
        })
    }

    fn text(&self) -> String {
        let Identity { folder_id, hive, seed, logs, hives, life, starts } = self;
        let hives: Vec<String> = hives.iter().map(|hive| hive.0.to_string()).collect();
        with_checksum(format!(
            "{OF_CLUSTER}{FORMAT}\nfolder {folder_id:016x}\nhive {}\nseed {seed:016x}\nlogs {logs}\nhives {}\nlife {life:016x}\n\
             starts {starts}\n",
            hive.0,
            hives.join(" ")
        ))
    }

    /// Writes the identity, in one step.
    pub(crate) fn write(&self, place: &Place) -> Result<(), OpenError> {
        let path = place::identity(&place.folder);
        let written = place.write_whole(&path, &[self.text().as_bytes()]);
        written.map(drop).map_err(|error| OpenError::io(&path, "write", error))
    }

    /// Checks that the folder is that of this hive in this cluster.
    pub(crate) fn check(&self, options: &ClusterOptions, folder: &Path) -> Result<(), OpenError> {
        if self.hive != options.hive {
            let (found, wanted) = (self.hive.0, options.hive.0);
            return Err(OpenError::OtherHive { folder: folder.to_path_buf(), found, wanted });
        }
        let other = |what: String| Err(OpenError::OtherCluster { folder: folder.to_path_buf(), what });
        let numbers = |hives: &[HiveId]| format!("{:?}", hives.iter().map(|hive| hive.0).collect::<Vec<_>>());
        let hives = options.hives();
        if self.hives != hives {
            return other(format!("its hives are {}, and not {}", numbers(&self.hives), numbers(&hives)));
        }
        if self.seed != options.seed {
            return other(format!("its seed is {:x}, and not {:x}", self.seed, options.seed));
        }
        if self.logs != options.logs {
            return other(format!(
                "its hives lead {} colonies each at first, and not {}",
                self.logs, options.logs
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_written_and_a_change_is_seen() {
        let hives = vec![HiveId(0), HiveId(1), HiveId(2)];
        let identity =
            Identity { folder_id: 1, hive: HiveId(2), seed: 3, logs: 4, hives, life: 0xabc, starts: 6 };
        let (text, path) = (identity.text(), Path::new("identity"));
        assert_eq!(Identity::parse(text.as_bytes(), path).unwrap(), identity);
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(Identity::parse(&bytes, path).is_err(), "byte {at}");
            assert!(Identity::parse(&bytes[..at], path).is_err(), "length {at}");
        }
    }
}
