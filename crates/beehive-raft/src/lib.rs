//! Where the logs of a hive lie on disk, and how a hive continues from them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Tests run this crate on simulated files, with chosen faults. See clippy.toml.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod files;
