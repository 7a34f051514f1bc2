//! A bee's mailbox: the bee's mode, its queued deliveries, and its body while no thread is running the bee.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::asleep::Asleep;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::Delivery;
use crate::hive::dispatch::turn::Link;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Whether a bee accepts and runs deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// The bee accepts deliveries and runs them.
    Active,
    /// Deliveries are queued but not run, because a merge or a move is holding the body.
    Frozen,
    /// The bee is about to move to another hive: it accepts no deliveries, and runs those that are queued. Senders keep
    /// their deliveries and try again.
    Leaving,
    /// The hive no longer leads the log of the bee, and another thread or task holds the bee's body: it accepts no deliveries, and
    /// runs none. Those that it has go back to their senders.
    Unhosted,
    /// The bee has ended. Senders get their delivery back and route it again.
    Gone,
}

/// The deliveries queued in a mailbox. Costs an idle bee only one word.
#[allow(clippy::box_collection)] // one word in each bee instead of four
#[derive(Default)]
pub(super) struct Queue(pub(super) Option<Box<VecDeque<Delivery>>>);

impl Queue {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.len())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<Delivery> {
        self.0.as_mut()?.pop_front()
    }

    pub(super) fn push_front(&mut self, delivery: Delivery) {
        self.0.get_or_insert_default().push_front(delivery)
    }

    #[inline]
    pub(super) fn push_back(&mut self, delivery: Delivery) {
        // the capacity is 1, because most bees get one delivery at a time
        self.0.get_or_insert_with(|| Box::new(VecDeque::with_capacity(1))).push_back(delivery)
    }

    /// Moves the deliveries of `later` to the end of this queue.
    pub(super) fn append(&mut self, later: &mut Self) {
        match (&mut self.0, &mut later.0) {
            (Some(queue), Some(later)) => queue.append(later),
            (None, _) => std::mem::swap(self, later),
            (_, None) => {}
        }
    }
}

/// A channel that carries the body to a task that has asked to freeze the bee.
pub(super) type Freezer = oneshot::Sender<Box<Body>>;

/// A bee that no thread is running.
pub(crate) enum AtRest {
    /// The bee has a body.
    Awake(Box<Body>),
    /// The bee has not run since the hive restarted.
    Asleep(Box<Asleep>),
}

impl AtRest {
    /// Returns the body of the bee, whose id the caller tells. Makes it first if the bee is asleep, so the caller should not
    /// hold a lock.
    ///
    /// # Errors
    ///
    /// See [`Asleep::wake`]. The caller then [sets the bee aside](Mailbox::set_aside).
    pub(super) fn wake(self, app: &AppRuntime, id: BeeId) -> Result<Box<Body>, Box<Asleep>> {
        match self {
            AtRest::Awake(body) => Ok(body),
            AtRest::Asleep(asleep) => asleep.wake(app, id),
        }
    }

    /// Checks whether the body cannot be taken yet: a record of the bee is not committed, or the bee cannot be decoded.
    pub(super) fn is_busy(&self) -> bool {
        match self {
            AtRest::Awake(body) => !body.is_settled(),
            AtRest::Asleep(asleep) => asleep.is_unreadable(),
        }
    }

    /// Returns the position of the bee's log.
    fn log(&self) -> Option<usize> {
        self.link().map(|link| link.position())
    }

    /// Returns the client of the bee's log.
    pub(super) fn link(&self) -> Option<&Arc<Link>> {
        match self {
            AtRest::Awake(body) => body.pending.as_ref().map(|pending| pending.link()),
            AtRest::Asleep(asleep) => Some(asleep.link()),
        }
    }
}

impl From<Box<Body>> for AtRest {
    fn from(body: Box<Body>) -> AtRest {
        AtRest::Awake(body)
    }
}

impl From<Box<Asleep>> for AtRest {
    fn from(asleep: Box<Asleep>) -> AtRest {
        AtRest::Asleep(asleep)
    }
}

/// The contents of a bee's mailbox, behind the bee's mutex.
pub(super) struct Mailbox {
    pub(super) mode: Mode,
    /// Whether the bee is running, or is queued for some thread to run.
    pub(super) scheduled: bool,
    /// The slot of the thread on which the bee was last scheduled.
    pub(super) waits_at: u16,
    /// Whether the bee is on the list of candidates for retirement.
    pub(super) idle_noted: bool,
    /// The position of the bee's log plus one; zero if the app is not journaled. It is not in the body, because a merge
    /// needs it while a handler is running.
    log: u16,
    /// The body, or the image from which it is made; `None` while the bee is running or frozen.
    pub(super) at_rest: Option<AtRest>,
    /// Deliveries not yet taken by any turn.
    pub(super) queue: Queue,
    /// The fields that only a few bees use.
    pub(super) rare: Option<Box<Rare>>,
}

/// Fields that are empty for most bees. They are boxed, so a bee that does not use them pays only one word.
#[derive(Default)]
pub(super) struct Rare {
    /// The bee's cells other than the first. They are not in the body, because the queen may add a cell while
    /// a handler is running.
    pub(super) more_cells: Vec<CellId>,
    /// The tasks that have asked to freeze the bee, oldest first. The bee starts no delivery until each of
    /// them has had the body.
    pub(super) freezers: VecDeque<Freezer>,
    /// The task that waits for the body because the bee is about to move to another hive.
    pub(super) leaves: Option<Freezer>,
}

fn log_plus_one(log: Option<usize>) -> u16 {
    log.map_or(0, |position| u16::try_from(position + 1).unwrap_or(u16::MAX))
}

impl Mailbox {
    /// Returns the mailbox of an idle bee.
    pub(super) fn idle(at_rest: Option<AtRest>, rare: Option<Box<Rare>>) -> Mailbox {
        Mailbox {
            log: log_plus_one(at_rest.as_ref().and_then(AtRest::log)),
            mode: Mode::Active,
            scheduled: false,
            waits_at: 0,
            idle_noted: false,
            at_rest,
            queue: Queue::default(),
            rare,
        }
    }

    /// Returns the position of the bee's log; `None` if the app is not journaled.
    pub(super) fn log(&self) -> Option<usize> {
        self.log.checked_sub(1).map(usize::from)
    }

    /// Notes the position of the bee's log.
    pub(super) fn is_in(&mut self, log: usize) {
        self.log = log_plus_one(Some(log))
    }

    /// Notes in which log the bee is whose image the caller has.
    pub(super) fn will_be(&mut self, asleep: &Asleep) {
        self.log = log_plus_one(Some(asleep.log()))
    }

    /// Puts in the image of a bee that begins, or that stays in this hive after all.
    pub(super) fn stays_asleep(&mut self, asleep: Box<Asleep>) {
        self.will_be(&asleep);
        self.at_rest = Some(asleep.into())
    }

    /// Puts in the image of a bee that cannot be decoded. The bee counts as scheduled, and no thread runs it: its messages
    /// stay in the queue.
    pub(super) fn set_aside(&mut self, asleep: Box<Asleep>) {
        self.scheduled = true;
        self.at_rest = Some(asleep.into())
    }

    /// Notes in which log the bee is that has this body.
    pub(super) fn note_log(&mut self, body: &Body) {
        self.log = log_plus_one(body.log())
    }

    pub(super) fn more_cells(&self) -> &[CellId] {
        self.rare.as_ref().map_or(&[], |rare| rare.more_cells.as_slice())
    }

    /// Checks whether a task has asked to freeze the bee.
    pub(super) fn is_waited_for(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.freezers.is_empty())
    }

    /// Takes the next request to freeze the bee.
    pub(super) fn next_freezer(&mut self) -> Option<Freezer> {
        let rare = self.rare.as_mut()?;
        let next = rare.freezers.pop_front();
        if next.is_none() && rare.more_cells.is_empty() {
            self.rare = None
        }
        next
    }
}
