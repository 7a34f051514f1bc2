//! The edge of a hive: IO bees, requests and reads, that is, everything that tasks outside of handlers use.

pub(crate) mod io_bee;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod supervise;
