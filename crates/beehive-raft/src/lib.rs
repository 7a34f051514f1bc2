//! Where the logs of a hive lie on disk, and how a hive continues from them.
//!
//! [`Data::open`] opens a folder, and [`Data::attach`] gives its state to a hive, whose messages then take effect only when
//! the change is on disk. Each request that was answered is there at the next start.
//!
//! ```text
//! folder
//!   identity                     which hive, seed, number of logs, number of starts (text)
//!   lock                         locked while a process uses the folder
//!   log-00000000000000000012     segments of the one log that all logs of the hive share
//!   checkpoint-000000000000..12  the state before a segment, so that earlier segments can be removed
//!   witness                      how far the log has been acknowledged
//! ```
//!
//! With the feature `cluster`, the module `cluster` replicates the logs of several hives, in memory or in a folder for each hive. Such a
//! folder has the same files, and a file for the snapshot of each group (`snapshot-..`).
//!
//! The files are described byte by byte in `log/format.rs`, `log/witness.rs`, `log/checkpoint.rs` and
//! `backup.rs`. For those of a cluster, see `cluster/disk/record.rs` and `cluster/disk/whole.rs`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Tests run this crate on simulated files, with chosen faults. See clippy.toml.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

#[cfg(feature = "cluster")]
extern crate beehive_core as beehive;

mod backup;
#[cfg(feature = "cluster")]
pub mod cluster;
mod data;
mod error;
pub mod files;
mod identity;
mod inspect;
pub mod limits;
mod log;
mod place;

pub use backup::{Backup, export, restore};
pub use data::{Data, Options};
pub use error::OpenError;
pub use identity::Identity;
pub use inspect::{Contents, Inspected, inspect};
#[cfg(feature = "testing")]
pub use log::Mutation;
pub use log::recovery::Found;
pub use log::scan::Cut;
pub use log::shared::LogStatus;
