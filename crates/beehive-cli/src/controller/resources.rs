//! What the controller takes of the machine: threads and descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Threads that run tasks: one per core, and one more, since a hive leaves one free of handlers so that sockets and
/// timers are always served.
pub(super) fn workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores + 1).max(3)
}

/// Raises the limit of open descriptors as far as the system lets us; returns it.
pub(super) fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // where that is refused, the old limit holds
    let limit = if setrlimit(Resource::Nofile, wanted).is_ok() { wanted } else { limit };
    limit.current.unwrap_or(u64::MAX)
}
