//! A bee's body (its state, its uncommitted runs and its outgoing messages), and the buffers that a thread
//! reuses for all bees of an app.

use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::executed::Executed;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::mailbox::Queue;
use crate::hive::bee::pending::PendingRuns;
use crate::hive::bee::traffic::Traffic;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::Turn;
use crate::limits;
use crate::state::any::AnyState;
use crate::time::Time;
use crate::view::Changes;
use std::collections::VecDeque;

/// The part of a bee to which the thread running the bee has exclusive access: the app's state, and
/// everything that changes with it.
/// The app's state comes last, so that a box of any app's body is a box of this type.
pub(crate) struct Body<S: ?Sized = dyn AnyState> {
    /// The executed runs whose records are not yet committed; `None` if the app is not journaled.
    pub(crate) pending: Option<Box<PendingRuns>>,
    /// The emitted messages that cannot be delivered yet.
    pub(crate) queue: SenderQueue,
    /// The latest time seen by the bee's handlers.
    pub(crate) now: Time,
    /// Version of the settings that `app` contains.
    pub(crate) settings: u32,
    /// Message counts by sender, and message durations.
    pub(crate) traffic: Traffic,
    /// The dictionaries, and the settings.
    pub(crate) app: S,
}

impl Body {
    /// Returns the position of the bee's log; `None` if the app is not journaled.
    pub(crate) fn log(&self) -> Option<usize> {
        self.pending.as_ref().map(|pending| pending.link().position())
    }

    /// Checks that all executed runs are committed.
    pub(super) fn is_settled(&self) -> bool {
        self.pending.as_ref().is_none_or(|pending| pending.is_settled())
    }

    /// Checks whether the hive no longer leads the bee's log.
    pub(crate) fn has_lost_log(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.link().is_deposed())
    }

    /// Checks whether the log has committed or refused any entries since the last call of
    /// [`Body::reconcile`].
    pub(super) fn is_behind(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_behind())
    }

    /// Applies the log's decisions about pending runs. Runs whose records were refused return to the front of
    /// `queue`, in their original order, to be executed again.
    pub(super) fn reconcile(&mut self, bee: &Bee, queue: &mut Queue, turn: &mut Turn) {
        if let Some(pending) = &mut self.pending {
            if pending.reconcile(bee, &mut self.app, &mut RouteContext::new(&mut self.queue, turn)) {
                turn.note_restored(bee.app.index, || bee.cells_after(0).0)
            }
            while let Some(delivery) = pending.again.pop_back() {
                queue.push_front(delivery)
            }
        }
    }
}

/// Buffers kept and reused by one thread for one app.
#[derive(Default)]
pub(crate) struct Local {
    #[allow(clippy::vec_box)] // mailboxes take the boxes themselves
    /// Empty queues for mailboxes.
    pub(super) queues: Vec<Box<VecDeque<Delivery>>>,
    /// Empty queues for runs whose records are not committed.
    runs: Vec<VecDeque<Executed>>,
    /// An instance whose dictionaries lend their working buffers to the dictionaries of the running bee.
    pub(super) room: Option<Box<dyn AnyState>>,
    /// An instance for stateless handlers, and the version of its settings.
    pub(crate) stateless: Option<(Box<dyn AnyState>, u32)>,
    /// Buffer for a run's changes that must be published in views.
    pub(crate) changes: Changes,
}

impl Local {
    /// Keeps an empty queue for the next mailbox that needs one, unless enough queues are already kept.
    pub(super) fn keep(&mut self, queue: Queue) {
        // drop a queue that has grown large, so that one burst does not occupy memory permanently
        if let Some(queue) = queue.0
            && queue.capacity() <= 64
            && self.queues.len() < limits::QUEUES_KEPT_PER_THREAD
        {
            self.queues.push(queue)
        }
    }

    /// Keeps an empty queue for the next bee that executes a run, unless it is large or enough queues are already kept.
    ///
    /// Many runs are executed on one thread and released on another. A thread that keeps many queues therefore passes
    /// them on, and a thread that has none takes those that another one has passed on.
    pub(super) fn keep_runs(&mut self, runs: VecDeque<Executed>, app: &AppRuntime) {
        debug_assert!(runs.is_empty(), "only empty queues are kept");
        if !(1..=64).contains(&runs.capacity()) || self.runs.len() >= limits::QUEUES_KEPT_PER_THREAD {
            return;
        }

        self.runs.push(runs);
        if self.runs.len() >= limits::QUEUES_KEPT_PER_THREAD / 2
            && let Some(mut passed_on) = app.queues_for_runs.try_lock()
            && passed_on.is_empty()
        {
            std::mem::swap(&mut self.runs, &mut *passed_on)
        }
    }

    /// Returns an empty queue for runs.
    pub(super) fn take_runs(&mut self, app: &AppRuntime) -> VecDeque<Executed> {
        if self.runs.is_empty()
            && let Some(mut passed_on) = app.queues_for_runs.try_lock()
        {
            std::mem::swap(&mut self.runs, &mut *passed_on)
        }
        self.runs.pop().unwrap_or_default()
    }

    /// Lends this thread's working buffers to the bee that is about to run.
    #[inline]
    pub(super) fn lend(&mut self, app: &AppRuntime, to: &mut dyn AnyState) {
        self.room.get_or_insert_with(|| app.fresh()).lend(to);
    }

    /// Takes the working buffers back after the run. Returns whether the dictionaries are empty.
    #[inline]
    pub(super) fn take_back(&mut self, from: &mut dyn AnyState) -> bool {
        match &mut self.room {
            Some(room) => from.lend(&mut **room),
            None => from.is_empty(),
        }
    }
}
