//! The synchronization primitives of the pair of copies. The pair's test under a scheduler replaces this
//! module.

pub(super) use parking_lot::Mutex;
pub(super) use std::sync::atomic::{AtomicU64, Ordering};
pub(super) use std::sync::{Arc, Weak};
