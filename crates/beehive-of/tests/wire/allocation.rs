//! Checks that decoding and encoding do not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use beehive_of::Frames;
use beehive_of::any::Message;
use bytes::BytesMut;

use crate::corpus::all;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every method passes its arguments to the system's allocator unchanged. Counting accesses a
// thread-local cell without a destructor, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> usize {
    ALLOCATIONS.with(Cell::get)
}

#[test]
fn decoding_and_encoding_allocate_nothing() {
    let before = allocations();
    drop(std::hint::black_box(vec![0u8; 9]));
    assert_eq!(allocations(), before + 1, "the counter does not count");

    let messages = all();
    let stream = messages.concat();
    let mut out = BytesMut::with_capacity(4 * stream.len());
    let before = allocations();
    let (mut count, mut whole) = (0, 0);
    for frame in Frames::new(&stream) {
        let frame = frame.unwrap();
        let message = Message::parse(frame).unwrap();
        message.check_lists().unwrap();
        if let Some(version) = frame.version() {
            let _ = message.encode_into(version, frame.xid(), &mut out);
        }

        // Some bodies are invalid. Only the complete layer detects this.
        let version = frame.version().unwrap_or(beehive_of::Version::V1_3);
        if let Ok(complete) = beehive_of::message::Message::parse(frame)
            && complete.check(version).is_ok()
        {
            let _ = complete.check_meaning(version);
            out.clear();
            complete.encode_into(version, frame.xid(), &mut out).unwrap();
            whole += 1;
        }

        count += 1;
    }

    assert_eq!(allocations(), before);
    assert_eq!(count, messages.len());
    assert!(whole > count / 2);
}
