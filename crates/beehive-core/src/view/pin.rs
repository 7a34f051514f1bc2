//! The version read by transactions on this thread. It is pinned by the first read of a run and released at the end of
//! the run.

use crate::message::{Error, ErrorKind};
use crate::panics::Refusal;
use crate::state::guard;
use crate::time::Time;
use crate::view::Views;
use crate::view::copies::{Column, Copies, Mirror};
use crate::view::pair::Version;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A pinned version.
pub(crate) struct Pinned {
    version: Arc<Version<Copies>>,
    /// Upper bound on the staleness: every change that the version lacks is at most this old.
    pub(crate) age: Duration,
    pub(crate) seed: u64,
}

impl Pinned {
    pub(super) fn new(version: Arc<Version<Copies>>, age: Duration, seed: u64) -> Self {
        Pinned { version, age, seed }
    }

    /// Returns a version that contains one dictionary, for reading state that does not belong to a hive.
    fn of<M: Mirror>(index: u32, mirror: M) -> Self {
        let mut columns: Vec<Option<Column>> = Vec::new();
        columns.resize_with(index as usize, || None);
        columns.push(Some(Column::of(mirror)));
        let version = Version { number: 0, content: Copies { columns } };
        Pinned::new(Arc::new(version), Duration::ZERO, guard::seed())
    }

    #[inline(always)]
    pub(crate) fn column(&self, index: u32) -> Option<&Column> {
        self.version.content.columns.get(index as usize)?.as_ref()
    }

    /// Returns the value that the function of type `F` derives from a dictionary, computing it if necessary.
    pub(super) fn derived<T: Send + Sync + 'static, F: 'static>(
        &self,
        index: u32,
        compute: impl Fn() -> T,
    ) -> Arc<T> {
        match self.column(index) {
            Some(column) => column.derived.get_or::<T, F>(compute),
            None => Arc::new(compute()),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.version.number
    }
}

struct Open {
    views: Arc<Views>,
    now: Time,
    pinned: Option<Rc<Pinned>>,
}

thread_local! {
    static OPEN: RefCell<Option<Open>> = const { RefCell::new(None) };
}

/// Guard that allows reads of views on this thread. Dropping it restores the state before [`open`].
pub(crate) struct Opened(Option<Open>);

/// Allows this thread to read views at time `now`.
#[inline]
pub(crate) fn open(views: &Arc<Views>, now: Time) -> Opened {
    let open = Open { views: views.clone(), now, pinned: None };
    Opened(OPEN.with_borrow_mut(|slot| slot.replace(open)))
}

impl Drop for Opened {
    #[inline]
    fn drop(&mut self) {
        // Drop the old value outside the borrow of the thread-local, because the drop may run the app's code, which
        // may itself read views.
        let over = OPEN.with_borrow_mut(|slot| std::mem::replace(slot, self.0.take()));
        drop(over)
    }
}

/// Returns the version read by this transaction, for a read of dictionary `index`, whose maximum age is `age_max`. For
/// state that does not belong to a hive, `own` copies the dictionary's own content.
///
/// Unwinds if the version is too old, if the dictionary has no views, or if no transaction is running.
#[inline]
pub(crate) fn pinned<M: Mirror>(
    name: &'static str,
    index: u32,
    age_max: Duration,
    own: impl FnOnce() -> M,
) -> Rc<Pinned> {
    let pinned = OPEN.with_borrow_mut(|slot| {
        let open = slot.as_mut()?;
        match &open.pinned {
            Some(pinned) => Some(pinned.clone()),
            None => {
                let pinned = Rc::new(open.views.pin(open.now));
                open.pinned = Some(pinned.clone());
                Some(pinned)
            }
        }
    });

    match pinned {
        Some(pinned) if pinned.age <= age_max && pinned.column(index).is_some() => pinned,
        Some(pinned) => refuse(name, index, age_max, &pinned),
        None if guard::is_recording() => Rc::new(Pinned::of(index, own())),
        None => panic!(
            "`{name}.shared()` was called outside a handler; use `hive.read(|app: &..| app.{name}.shared() ..)`"
        ),
    }
}

#[cold]
fn refuse(name: &'static str, index: u32, age_max: Duration, pinned: &Pinned) -> ! {
    let error = match pinned.column(index) {
        None => Error::of(
            ErrorKind::Limit,
            format!(
                "`{name}` has no views, because no handler of its app calls `.shared()` on it; put `#[shared]` on the field"
            ),
        ),
        Some(_) => {
            OPEN.with_borrow(|slot| {
                if let Some(open) = slot {
                    open.views.count_stale()
                }
            });

            let age = pinned.age;
            Error::of(
                ErrorKind::Stale,
                format!("the view of `{name}` is {age:?} old, and its `max_age` is {age_max:?}"),
            )
        }
    };

    // Unwind without calling the panic hook, because this is not a panic but the result of the transaction.
    std::panic::resume_unwind(Box::new(Refusal(error)))
}
