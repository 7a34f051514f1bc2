//! A file or folder name that no other call has, so that two tests of a process cannot disturb each other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a path in the folder for temporary files. Nothing is there yet; who creates it removes it.
pub(crate) fn path(suffix: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("beehive-of-{}-{number}{suffix}", std::process::id()))
}
