//! Work that was parked because many threads wait for a crash marker, and that runs again: see [`Resumed`].

use crate::hive::consensus::quarantine::{Resume, Resumed};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Runnable, Turn};
use crate::hive::dispatch::workers::Bees;
use crate::time::Time;
use std::sync::Arc;

/// Parked work that runs again.
struct Again {
    work: Arc<dyn Runnable>,
    /// Resumes the next piece when this one has run, or will never run.
    _next: Resumed,
}

impl Runnable for Again {
    fn app(&self) -> u16 {
        self.work.app()
    }

    fn run(self: Arc<Self>, turn: &mut Turn) {
        self.work.clone().run(turn)
    }

    fn has_held_lately(&self, now: Time) -> bool {
        self.work.has_held_lately(now)
    }
}

/// Returns the function that resumes `work`. It does not keep the hive.
pub(crate) fn resume(work: Arc<dyn Runnable>, hive: &Arc<HiveInner>) -> Resume {
    let hive = Arc::downgrade(hive);
    Box::new(move |next| {
        let Some(hive) = hive.upgrade() else { return Some(next) };
        let again: Arc<dyn Runnable> = Arc::new(Again { work, _next: next });
        hive.give_to_runners(Bees::from([again]));
        None
    })
}
