//! Unique names of temporary files and folders, so two tests in one process cannot interfere with each other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a unique path in the folder for temporary files. Nothing exists at the path yet; the caller must
/// remove everything that it creates there.
pub(crate) fn path(suffix: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("beehive-of-{}-{number}{suffix}", std::process::id()))
}
