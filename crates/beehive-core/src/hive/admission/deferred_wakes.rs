//! Wake-ups deferred to the end of a worker's turn.
//!
//! tokio puts a task that a worker wakes into that worker's LIFO slot, from which no other worker steals. If
//! a turn woke a task immediately, a handler that spins later in the same turn would hold up that task. A
//! turn on a worker therefore collects its wake-ups and sends them when it ends. If a handler holds the
//! worker, the watchdog sends the collected wake-ups from its own thread.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::Notify;

thread_local! {
    /// The wake-ups that this thread's turn has collected; `None` while the thread is not collecting any.
    static LATER: RefCell<Option<Arc<Later>>> = const { RefCell::new(None) };
}

/// A deferred wake-up.
enum Wake {
    One(Arc<Notify>),
    All(Arc<Notify>),
    Call(Box<dyn FnOnce() + Send>),
}

/// The wake-ups that a turn has collected but not yet sent. The watchdog's thread may empty this list while
/// the turn's thread adds to it. The mutex ensures that exactly one of the two threads sends each wake-up.
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

    /// Starts collecting this thread's wake-ups. The collection ends when the returned value is dropped.
    pub(crate) fn collect(self: &Arc<Self>) -> Collecting {
        LATER.set(Some(self.clone()));
        Collecting(self.clone())
    }
}

/// A running collection of wake-ups. Dropping this value ends the collection and sends the remaining
/// wake-ups.
pub(crate) struct Collecting(Arc<Later>);

impl Collecting {
    /// Returns the number of wake-ups collected so far.
    pub(crate) fn len(&self) -> usize {
        self.0.0.lock().len()
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        LATER.set(None);
        self.0.wake()
    }
}

/// Adds a wake-up to those that this thread's turn has collected. Returns `false` if the thread is not
/// collecting wake-ups.
fn later(wake: impl FnOnce() -> Wake) -> bool {
    // `try_with` fails while the thread-local data is being destroyed; the wake-up is then not deferred
    let collect = |later: &RefCell<Option<Arc<Later>>>| match &*later.borrow() {
        Some(later) => {
            later.0.lock().push(wake());
            true
        }
        None => false,
    };
    LATER.try_with(collect).unwrap_or(false)
}

/// Calls [`Notify::notify_one`]: at the end of the turn if this thread is collecting wake-ups, otherwise
/// immediately.
pub(crate) fn one(notify: &Arc<Notify>) {
    if !later(|| Wake::One(notify.clone())) {
        notify.notify_one()
    }
}

/// Calls [`Notify::notify_waiters`]: at the end of the turn if this thread is collecting wake-ups, otherwise
/// immediately.
pub(crate) fn all(notify: &Arc<Notify>) {
    if !later(|| Wake::All(notify.clone())) {
        notify.notify_waiters()
    }
}

/// Calls a function that wakes a task: at the end of the turn if this thread is collecting wake-ups,
/// otherwise immediately.
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

/// Returns whether the current turn on this thread is collecting wake-ups.
pub(crate) fn is_collecting() -> bool {
    LATER.try_with(|later| later.borrow().is_some()).unwrap_or(false)
}
