//! The body of a bee: its state and all that goes with it, and what a thread keeps for such bodies.

use crate::app::App;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::mailbox::Queue;
use crate::hive::bee::pending::PendingRuns;
use crate::hive::bee::traffic::Traffic;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::Turn;
use crate::limits;
use crate::state::column::Columns;
use crate::time::Time;
use crate::view::Changes;
use std::collections::VecDeque;

/// What a bee is made of.
pub(crate) struct Body<A: App> {
    pub(crate) app: A,
    /// What is executed and not committed, if the app is journaled.
    pub(crate) pending: Option<Box<PendingRuns<A>>>,
    pub(crate) queue: SenderQueue,
    /// The time its handlers saw last.
    pub(crate) now: Time,
    /// The version of its settings.
    pub(crate) settings: u32,
    pub(crate) traffic: Traffic,
}

impl<A: App> Body<A> {
    /// Nothing it did is waiting to be committed.
    pub(super) fn is_settled(&self) -> bool {
        self.pending.as_ref().is_none_or(|pending| pending.is_settled())
    }

    /// Something may have been decided about what it did.
    pub(super) fn is_behind(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_behind())
    }

    /// Acts on what was decided; what must be run again goes before everything else.
    pub(super) fn reconcile(&mut self, bee: &Bee<A>, queue: &mut Queue<A>, turn: &mut Turn) {
        if let Some(pending) = &mut self.pending {
            if pending.reconcile(&bee.app, &mut self.app, &mut RouteContext::new(&mut self.queue, turn)) {
                turn.note_restored(bee.app.index, || bee.cells_after(0).0)
            }
            while let Some(delivery) = pending.again.pop_back() {
                queue.push_front(delivery)
            }
        }
    }
}

/// What a thread keeps for an app, to be used again.
pub(crate) struct Local<A: App> {
    #[allow(clippy::vec_box)] // given to mailboxes as they are
    pub(super) queues: Vec<Box<VecDeque<Delivery<A>>>>,
    /// Lends dictionaries what they need while they change.
    pub(super) room: Option<Box<A>>,
    /// An instance without state, for stateless handlers, and the version of its settings.
    pub(crate) stateless: Option<(Box<A>, u32)>,
    /// Room for what a run changes that snapshots are told of.
    pub(crate) changes: Changes,
}

impl<A: App> Default for Local<A> {
    fn default() -> Self {
        Local { queues: Vec::new(), room: None, stateless: None, changes: Changes::default() }
    }
}

impl<A: App> Local<A> {
    pub(super) fn keep(&mut self, queue: Queue<A>) {
        // a queue that once was long is not worth keeping
        if let Some(queue) = queue.0
            && queue.capacity() <= 64
            && self.queues.len() < limits::QUEUES_KEPT_PER_THREAD
        {
            self.queues.push(queue)
        }
    }

    #[inline]
    pub(super) fn lend(&mut self, app: &AppRuntime<A>, to: &mut A) {
        self.room.get_or_insert_with(|| Box::new(app.fresh())).lend(to)
    }

    #[inline]
    pub(super) fn take_back(&mut self, from: &mut A) {
        if let Some(room) = &mut self.room {
            from.lend(room)
        }
    }
}
