//! The mailbox of a bee: whether it takes messages, those that wait, and the body while it is idle.

use crate::app::App;
use crate::cell::CellId;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::Delivery;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// Whether a bee takes messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// It runs what comes.
    Active,
    /// What comes waits: its body is away, to be merged or moved.
    Frozen,
    /// It is no more; senders route again.
    Gone,
}

/// Deliveries that wait in a mailbox. Those of idle bees take no more than this word.
#[allow(clippy::box_collection)] // a word in each bee instead of four
pub(super) struct Queue<A: App>(pub(super) Option<Box<VecDeque<Delivery<A>>>>);

impl<A: App> Default for Queue<A> {
    fn default() -> Self {
        Queue(None)
    }
}

impl<A: App> Queue<A> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.len())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<Delivery<A>> {
        self.0.as_mut()?.pop_front()
    }

    pub(super) fn push_front(&mut self, delivery: Delivery<A>) {
        self.0.get_or_insert_default().push_front(delivery)
    }

    #[inline]
    pub(super) fn push_back(&mut self, delivery: Delivery<A>) {
        // for one: most bees get one delivery at a time
        self.0.get_or_insert_with(|| Box::new(VecDeque::with_capacity(1))).push_back(delivery)
    }

    pub(super) fn append(&mut self, later: &mut Self) {
        match (&mut self.0, &mut later.0) {
            (Some(queue), Some(later)) => queue.append(later),
            (None, _) => std::mem::swap(self, later),
            (_, None) => {}
        }
    }
}

/// Where the body goes that somebody waits for.
pub(super) type Freezer<A> = oneshot::Sender<Box<Body<A>>>;

pub(super) struct Mailbox<A: App> {
    pub(super) mode: Mode,
    /// On some turn's list of bees to run, or running.
    pub(super) scheduled: bool,
    /// The slot at which it was last scheduled.
    pub(super) waits_at: u16,
    /// Noted as a candidate for retirement.
    pub(super) idle_noted: bool,
    pub(super) body: Option<Box<Body<A>>>,
    pub(super) queue: Queue<A>,
    pub(super) rare: Option<Box<Rare<A>>>,
}

/// What most bees have nothing of: a word in each of them.
pub(super) struct Rare<A: App> {
    /// The cells it owns besides the first. Here and not in the body, because the queen may add one while a handler runs.
    pub(super) more_cells: Vec<CellId>,
    /// Who wants the body next, before any message.
    pub(super) freezers: VecDeque<Freezer<A>>,
}

impl<A: App> Default for Rare<A> {
    fn default() -> Self {
        Rare { more_cells: Vec::new(), freezers: VecDeque::new() }
    }
}

impl<A: App> Mailbox<A> {
    pub(super) fn more_cells(&self) -> &[CellId] {
        self.rare.as_ref().map_or(&[], |rare| rare.more_cells.as_slice())
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.freezers.is_empty())
    }

    pub(super) fn next_freezer(&mut self) -> Option<Freezer<A>> {
        let rare = self.rare.as_mut()?;
        let next = rare.freezers.pop_front();
        if next.is_none() && rare.more_cells.is_empty() {
            self.rare = None
        }
        next
    }
}
