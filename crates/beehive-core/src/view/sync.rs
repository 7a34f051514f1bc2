//! What the pair of copies is built on; its test under a scheduler that tries interleavings has another one.

pub(super) use parking_lot::Mutex;
pub(super) use std::sync::atomic::{AtomicU64, Ordering};
pub(super) use std::sync::{Arc, Weak};
