//! The synchronization primitives of the pair of copies. The test that explores thread interleavings of the pair
//! replaces this module.

pub(super) use parking_lot::Mutex;
pub(super) use std::sync::atomic::{AtomicU64, Ordering};
pub(super) use std::sync::{Arc, Weak};
