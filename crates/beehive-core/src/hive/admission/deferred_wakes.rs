//! Wake-ups that are deferred to the end of a worker's turn.
//!
//! tokio puts a task that a worker wakes into that worker's LIFO slot, from which no other worker steals.
//! If a turn woke a task in its middle, the next handler that spins would hold the task up. A turn on a
//! worker therefore collects its wake-ups and sends them at its end. If a handler holds the worker, the
//! watchdog sends them from its own thread.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::Notify;

thread_local! {
    /// The wake-ups that this thread's turn has collected; `None` while no turn collects any.
    static LATER: RefCell<Option<Arc<Later>>> = const { RefCell::new(None) };
}

/// A deferred wake-up.
enum Wake {
    One(Arc<Notify>),
    All(Arc<Notify>),
    Call(Box<dyn FnOnce() + Send>),
}

/// The wake-ups that a turn has collected and not sent. The watchdog's thread may empty it while the turn
/// adds to it. The mutex ensures that each wake-up is sent exactly once.
#[derive(Default)]
pub(crate) struct Later(Mutex<Vec<Wake>>);

impl Later {
    /// Sends the collected wake-ups, outside the lock.
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

    /// Collects this thread's wake-ups until the return value is dropped.
    pub(crate) fn collect(self: &Arc<Self>) -> Collecting {
        LATER.set(Some(self.clone()));
        Collecting(self.clone())
    }
}

/// Ends the collection when it is dropped, and sends the remaining wake-ups.
pub(crate) struct Collecting(Arc<Later>);

impl Drop for Collecting {
    fn drop(&mut self) {
        LATER.set(None);
        self.0.wake()
    }
}

/// Adds a wake-up to those of this thread's turn. Returns `false` if the thread does not collect them.
fn later(wake: impl FnOnce() -> Wake) -> bool {
    // `try_with` fails while the thread-local data is being destroyed: the wake-up is then not deferred
    let collect = |later: &RefCell<Option<Arc<Later>>>| match &*later.borrow() {
        Some(later) => {
            later.0.lock().push(wake());
            true
        }
        None => false,
    };
    LATER.try_with(collect).unwrap_or(false)
}

/// Like [`Notify::notify_one`], at the end of the turn if this thread collects wake-ups.
pub(crate) fn one(notify: &Arc<Notify>) {
    if !later(|| Wake::One(notify.clone())) {
        notify.notify_one()
    }
}

/// Like [`Notify::notify_waiters`], at the end of the turn if this thread collects wake-ups.
pub(crate) fn all(notify: &Arc<Notify>) {
    if !later(|| Wake::All(notify.clone())) {
        notify.notify_waiters()
    }
}

/// Calls a function that wakes a task, at the end of the turn if this thread collects wake-ups, otherwise
/// at once.
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

/// Checks whether this thread's turn collects wake-ups.
pub(crate) fn is_collecting() -> bool {
    LATER.try_with(|later| later.borrow().is_some()).unwrap_or(false)
}
