//! Wake-ups that wait until a worker is through with the handlers it runs.
//!
//! What a worker wakes stands next in line at that very worker, where no other takes it away: woken in the middle of a turn
//! it would be held by the next handler that spins. So a turn on a worker collects what it wakes, and wakes it at its end;
//! if a handler holds the worker, the relief does it, from its own thread.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::Notify;

thread_local! {
    static LATER: RefCell<Option<Arc<Later>>> = const { RefCell::new(None) };
}

enum Wake {
    One(Arc<Notify>),
    All(Arc<Notify>),
    Call(Box<dyn FnOnce() + Send>),
}

/// What a turn has woken, and not yet told.
#[derive(Default)]
pub(crate) struct Later(Mutex<Vec<Wake>>);

impl Later {
    /// Wakes all that has been collected.
    pub(crate) fn wake(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        for one in all {
            match one {
                Wake::One(notify) => notify.notify_one(),
                Wake::All(notify) => notify.notify_waiters(),
                Wake::Call(call) => call(),
            }
        }
    }

    /// Collects what this thread wakes, until the return value is dropped.
    pub(crate) fn collect(self: &Arc<Self>) -> Collecting {
        LATER.set(Some(self.clone()));
        Collecting(self.clone())
    }
}

pub(crate) struct Collecting(Arc<Later>);

impl Drop for Collecting {
    fn drop(&mut self) {
        LATER.set(None);
        self.0.wake()
    }
}

/// Hands a wake-up to the turn of this thread, if it collects them.
fn later(wake: impl FnOnce() -> Wake) -> bool {
    // a thread that is ending collects nothing
    let collect = |later: &RefCell<Option<Arc<Later>>>| match &*later.borrow() {
        Some(later) => {
            later.0.lock().push(wake());
            true
        }
        None => false,
    };
    LATER.try_with(collect).unwrap_or(false)
}

/// As [`Notify::notify_one`].
pub(crate) fn one(notify: &Arc<Notify>) {
    if !later(|| Wake::One(notify.clone())) {
        notify.notify_one()
    }
}

/// As [`Notify::notify_waiters`].
pub(crate) fn all(notify: &Arc<Notify>) {
    if !later(|| Wake::All(notify.clone())) {
        notify.notify_waiters()
    }
}

/// Calls something that wakes somebody.
pub(crate) fn call(call: impl FnOnce() + Send + 'static) {
    let mut call = Some(call);
    later(|| match call.take() {
        Some(call) => Wake::Call(Box::new(call)),
        None => Wake::Call(Box::new(|| {})),
    });
    if let Some(call) = call {
        call()
    }
}

/// Whether the turn of this thread collects wake-ups.
pub(crate) fn is_collecting() -> bool {
    LATER.try_with(|later| later.borrow().is_some()).unwrap_or(false)
}
