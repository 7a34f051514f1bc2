//! Determines the number of worker threads and raises the limit on file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the number of worker threads: one per core, and one more that the hive keeps free of handlers to serve
/// sockets and timers.
pub(super) fn workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores + 1).max(3)
}

/// Raises the soft limit on file descriptors to the hard limit. Returns the limit in force.
pub(crate) fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // if the system refuses, the old limit stays in force
    let limit = if setrlimit(Resource::Nofile, wanted).is_ok() { wanted } else { limit };
    limit.current.unwrap_or(u64::MAX)
}
