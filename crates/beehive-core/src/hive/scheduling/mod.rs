//! The watchdog: handlers that hold a thread for too long, and the threads that take over.

pub(crate) mod maintenance;
pub(crate) mod stuck;
pub(crate) mod watchdog;
