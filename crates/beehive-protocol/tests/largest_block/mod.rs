//! Measures the largest block that a test allocates. Every allocation of the test binary is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The largest block that this thread has allocated since it was set to 0.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Watching;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Does nothing while the thread ends.
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// Runs `work`. Also returns the size of the largest block that it has allocated.
pub(crate) fn largest_block<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let done = work();
    (done, LARGEST.get())
}
