//! A bee: the logical thread that exclusively owns a set of cells of one app.
//!
//! While the bee is idle, its mailbox holds its body (the state, the uncommitted runs and the outgoing
//! messages). A thread runs the bee by taking the body out of the mailbox, so no second thread can run the
//! bee at the same time. An idle bee has no task and holds no lock.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::asleep::Asleep;
use crate::hive::bee::body::{Body, Local};
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::leaving;
use crate::hive::bee::mailbox::{AtRest, Mailbox, Mode, Queue, Rare};
use crate::hive::consensus::journal::{AppId, BeeImage, LaneId, Seq};
use crate::hive::dispatch::turn::{Executing, Link, Runnable, Turn};
use crate::mutant::Mutant;
use crate::panics;
use crate::time::Time;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The result of an attempt to retire a bee.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Retirement {
    /// The bee has ended.
    Ended,
    /// The bee is running or has work, or one of its cells is not empty. The bee becomes a candidate again
    /// when it is next idle and empty.
    Busy,
    /// The bee is idle and empty, but a message that it sent or handled is not yet settled. The caller must
    /// try again later.
    Later,
    /// The bee is waiting only for timers it has set. If it ended now, the next owner of its cells would not
    /// know about these timers.
    WithItsTimers,
}

/// An attempt to freeze a bee.
pub(crate) enum Freezing {
    /// The bee is frozen. This is its body.
    Done(Box<Body>),
    /// The receiver gets the body when the bee can be frozen, or an error if the bee ends first. A caller that gives up
    /// must close the receiver and look whether it has the body.
    Waiting(oneshot::Receiver<Box<Body>>),
    /// The bee has ended, or is about to move to another hive.
    Ended,
}

/// A bee's log, and the floors of the resumable lanes from which the bee has received messages.
type Floors = (Arc<Link>, Vec<(LaneId, Seq)>);

/// The logical thread that owns a set of cells.
pub(crate) struct Bee {
    pub(crate) id: BeeId,
    /// The cell under which the bee is enumerated. It never changes.
    first_cell: CellId,
    pub(crate) app: Arc<AppRuntime>,
    pub(super) mailbox: Mutex<Mailbox>,
}

impl Bee {
    /// Creates an idle bee.
    pub(crate) fn new(
        app: &Arc<AppRuntime>,
        id: BeeId,
        cells: &[CellId],
        at_rest: impl Into<AtRest>,
    ) -> Arc<Bee> {
        Bee::at_rest(app, id, cells, Some(at_rest.into()))
    }

    pub(super) fn at_rest(
        app: &Arc<AppRuntime>,
        id: BeeId,
        cells: &[CellId],
        at_rest: Option<AtRest>,
    ) -> Arc<Bee> {
        let first_cell = cells.first().copied().unwrap_or(CellId(0));
        let more = cells.get(1..).filter(|more| !more.is_empty());
        let rare = more.map(|more| Box::new(Rare { more_cells: more.to_vec(), ..Rare::default() }));
        let mailbox = Mutex::new(Mailbox::idle(at_rest, rare));
        Arc::new(Bee { id, first_cell, app: app.clone(), mailbox })
    }

    /// Returns the cell under which the bee is enumerated. The bee owns this cell until it ends.
    pub(crate) fn first_cell(&self) -> CellId {
        self.first_cell
    }

    /// Puts a run of messages into the mailbox and schedules the bee if necessary. If the bee has ended,
    /// returns the delivery for the sender to route again.
    #[inline]
    pub(crate) fn push(self: Arc<Self>, delivery: Delivery, turn: &mut Turn) -> Result<(), Delivery> {
        let mut mailbox = self.mailbox.lock();
        match mailbox.mode {
            Mode::Active => {
                if mailbox.queue.0.is_none() {
                    mailbox.queue = Queue(turn.local::<Local>(self.app.index).queues.pop())
                }
                mailbox.queue.push_back(delivery);
                let first = !std::mem::replace(&mut mailbox.scheduled, true);
                // the bee may be scheduled at another slot, whose thread may not run it soon. If this turn's
                // bees run on this worker, the turn does not wait for that thread but schedules the bee here
                // as well. Whichever thread comes second finds no body and does nothing
                let stranded =
                    mailbox.at_rest.is_some() && turn.follows() && mailbox.waits_at != turn.slot as u16;
                if first || stranded {
                    mailbox.waits_at = turn.slot as u16;
                    drop(mailbox);
                    turn.schedule(self);
                }
                Ok(())
            }
            Mode::Frozen => {
                mailbox.queue.push_back(delivery);
                Ok(())
            }
            Mode::Leaving | Mode::Unhosted => Err(delivery),
            Mode::Gone if self.breaks(Mutant::StaleRouteAccepted) => Ok(()),
            Mode::Gone => Err(delivery),
        }
    }

    /// Freezes the bee: takes its body as soon as no handler runs and every run is committed. From then on,
    /// messages are queued but not run. Returns `None` if the bee has ended.
    pub(crate) async fn freeze(self: &Arc<Self>) -> Option<Box<Body>> {
        match self.ask_to_freeze() {
            Freezing::Done(body) => Some(body),
            Freezing::Waiting(waiting) => waiting.await.ok(),
            Freezing::Ended => None,
        }
    }

    /// Begins to freeze the bee, like [`Bee::freeze`].
    pub(crate) fn ask_to_freeze(self: &Arc<Self>) -> Freezing {
        let mut mailbox = self.mailbox.lock();
        if matches!(mailbox.mode, Mode::Gone | Mode::Leaving | Mode::Unhosted) {
            return Freezing::Ended;
        }
        // the bee is running, or one of its records is not yet committed
        let is_busy = mailbox.at_rest.as_ref().is_none_or(AtRest::is_busy);
        if let Some(at_rest) = mailbox.at_rest.take_if(|_| !is_busy) {
            // if the bee is scheduled, the turn that wants to run it will find no body, and `thaw` will
            // schedule the bee again
            mailbox.mode = Mode::Frozen;
            drop(mailbox);
            let back = match at_rest.wake(&self.app, self.id) {
                Ok(body) => return Freezing::Done(body),
                Err(back) => back,
            };
            // the caller waits as for a bee whose records are never committed
            mailbox = self.mailbox.lock();
            if mailbox.mode != Mode::Frozen {
                // the hive has lost its log meanwhile
                return Freezing::Ended;
            }
            mailbox.mode = Mode::Active;
            mailbox.set_aside(back)
        }
        let (sender, receiver) = oneshot::channel();
        mailbox.rare.get_or_insert_default().freezers.push_back(sender);
        Freezing::Waiting(receiver)
    }

    /// Checks whether a merge or a move holds the body.
    pub(crate) fn is_frozen(&self) -> bool {
        self.mailbox.lock().mode == Mode::Frozen
    }

    /// Returns the position of the bee's log; `None` if the app is not journaled. While a bee is moving from one log of
    /// the hive to another, this is the old log.
    pub(crate) fn log(&self) -> Option<usize> {
        self.mailbox.lock().log()
    }

    /// Thaws the bee: puts the body back, or passes it to the next task waiting to freeze the bee.
    pub(crate) fn thaw(self: &Arc<Self>, body: Box<Body>, turn: &mut Turn) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.mode == Mode::Gone && body.has_lost_log() {
            drop(mailbox);
            return Bee::drop_lost(body);
        }
        debug_assert_eq!(
            mailbox.mode,
            Mode::Frozen,
            "only a frozen bee is thawed; one that is gone stays gone"
        );

        mailbox.note_log(&body);
        let Some(body) = pass_to_freezer(&mut mailbox, body) else { return };
        mailbox.mode = Mode::Active;
        mailbox.at_rest = Some(body.into());
        mailbox.scheduled = !mailbox.queue.is_empty();
        if mailbox.scheduled {
            drop(mailbox);
            turn.schedule(self.clone());
        }
    }

    /// Returns the bee's cells except the first `known` ones, and the total number of its cells. A bee never
    /// gives up a cell while it lives, so the caller can remember the number and later ask only for new
    /// cells.
    pub(crate) fn cells_after(&self, known: usize) -> (Vec<CellId>, usize) {
        let mailbox = self.mailbox.lock();
        let more = mailbox.more_cells();
        (std::iter::once(self.first_cell).chain(more.iter().copied()).skip(known).collect(), more.len() + 1)
    }

    /// Returns the lane on which the bee sends.
    pub(crate) fn lane(&self) -> LaneId {
        LaneId::of_bee(AppId(self.app.index), self.id)
    }

    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.app.link.as_ref().is_some_and(|link| link.lanes.breaks(mutant))
    }

    /// Checks whether the bee may have ended, without waiting for its mailbox. Returns `true` if the
    /// mailbox is locked. For assertions that run under other locks.
    pub(crate) fn may_be_gone(&self) -> bool {
        self.mailbox.try_lock().is_none_or(|mailbox| mailbox.mode == Mode::Gone)
    }

    /// Returns the number of the bee's cells.
    pub(crate) fn cells_owned(&self) -> usize {
        self.mailbox.lock().more_cells().len() + 1
    }

    /// Adds a cell assigned to this bee by the registry. Returns `false` if the bee has ended.
    pub(crate) fn own(&self, cell: CellId) -> bool {
        let mut mailbox = self.mailbox.lock();
        if mailbox.mode == Mode::Gone {
            return false;
        }
        mailbox.rare.get_or_insert_default().more_cells.push(cell);
        true
    }

    /// Takes over the cells and the queued deliveries of `from` and ends `from`. Both bees must be frozen.
    /// Returns the cells. Other tasks waiting to freeze `from` learn that it has ended.
    pub(crate) fn take_over(&self, from: &Bee) -> Vec<CellId> {
        let (rare, mut queue) = {
            let mut mailbox = from.mailbox.lock();
            debug_assert!(
                mailbox.mode == Mode::Frozen && mailbox.at_rest.is_none(),
                "a bee is absorbed only while it is frozen and its body is held by the queen"
            );
            mailbox.mode = Mode::Gone;
            (mailbox.rare.take(), std::mem::take(&mut mailbox.queue))
        };

        let more = rare.into_iter().flat_map(|rare| rare.more_cells);
        let cells: Vec<_> = std::iter::once(from.first_cell).chain(more).collect();

        let mut mailbox = self.mailbox.lock();
        mailbox.queue.append(&mut queue);
        mailbox.rare.get_or_insert_default().more_cells.extend_from_slice(&cells);
        cells
    }

    /// Ends the bee if it is idle, owns only empty cells, and has handled no messages that may be resent.
    ///
    /// While this thread holds the mailbox lock, it first calls `release`, which removes the routes of the
    /// cells, and then sets the mode to `Gone`. Another thread whose push is refused locked the mailbox later
    /// and saw `Gone`, so it finds the cells without an owner when it routes its message again. `release`
    /// gets the cells. If a log may contain the bee, it also gets that log and the floors below which the bee
    /// has handled all messages.
    pub(crate) fn retire(&self, release: impl FnOnce(&[CellId], Option<Floors>)) -> Retirement {
        let mut mailbox = self.mailbox.lock();
        if matches!(mailbox.mode, Mode::Frozen | Mode::Leaving) || mailbox.is_waited_for() {
            // after a thaw, the bee runs again only if it has messages, so nothing else would note that it is
            // idle
            mailbox.idle_noted = true;
            return Retirement::Later;
        }
        mailbox.idle_noted = false;
        if mailbox.mode != Mode::Active || mailbox.scheduled || !mailbox.queue.is_empty() {
            return Retirement::Busy;
        }

        let mailbox = &mut *mailbox;
        let Some(AtRest::Awake(body)) = &mut mailbox.at_rest else { return Retirement::Busy };
        if !body.is_settled() || !body.app.is_empty() {
            return Retirement::Busy;
        }

        if !body.queue.is_empty() {
            // a message sent by the bee is blocked until its cells have an owner, and no event will report
            // its delivery
            mailbox.idle_noted = true;
            return Retirement::Later;
        }
        if body.queue.is_shared() {
            mailbox.idle_noted = true;
            return Retirement::WithItsTimers;
        }

        // In a cluster, only the log decides that a bee has ended: another hive may lead the log by now, and may have created a
        // bee there that has no record here
        let is_logged = body.pending.as_ref().is_some_and(|pending| {
            pending.is_logged || (pending.link().is_clustered() && !self.breaks(Mutant::UnloggedEndsAtOnce))
        });
        let floors = match &body.pending {
            // the bee's log resends unacknowledged messages of the bee, and of the bees that merged into it. The next
            // owner of the cells may be in another log, and after a crash nothing would order its messages after
            // these
            Some(pending) if pending.has_unacknowledged(self.lane()) && !self.breaks(Mutant::ReleaseBusy) => {
                None
            }
            // until every log that the bee has left has dropped it, a restart would find the bee there
            Some(pending) if pending.not_dropped() > 0 && !self.breaks(Mutant::EndsBeforeDropped) => None,
            Some(pending) => pending.link().lanes.floors_above(&pending.seen, AppId(self.app.index)),
            None => Some(Vec::new()),
        };

        let Some(floors) = floors else {
            // a sender may still resend a message that this bee has handled, or the bee's log may still
            // resend a message that the bee has sent
            mailbox.idle_noted = true;
            return Retirement::Later;
        };

        let log = body.pending.as_ref().filter(|_| is_logged).map(|pending| pending.link().clone());
        let cells: SmallVec<[CellId; 4]> =
            std::iter::once(self.first_cell).chain(mailbox.more_cells().iter().copied()).collect();

        release(&cells, log.map(|log| (log, floors)));
        mailbox.mode = Mode::Gone;
        mailbox.at_rest = None;
        Retirement::Ended
    }

    /// Calls `look` with the body if the bee is idle, and not asleep.
    pub(crate) fn peek<R>(&self, look: impl FnOnce(&mut Body) -> R) -> Option<R> {
        match &mut self.mailbox.lock().at_rest {
            Some(AtRest::Awake(body)) => Some(look(body)),
            _ => None,
        }
    }

    /// Calls `look` with the bee's image if the bee is asleep.
    pub(crate) fn peek_asleep<R>(&self, look: impl FnOnce(&BeeImage) -> R) -> Option<R> {
        match &self.mailbox.lock().at_rest {
            Some(AtRest::Asleep(asleep)) => Some(look(asleep.image())),
            _ => None,
        }
    }

    /// Calls `look` with the body if the bee is idle. If the bee is asleep, wakes it first.
    #[cfg(feature = "testing")]
    pub(crate) fn wake_and_peek<R>(&self, look: impl FnOnce(&mut Body) -> R) -> Option<R> {
        let mut mailbox = self.mailbox.lock();
        let mut body = match mailbox.at_rest.take()?.wake(&self.app, self.id) {
            Ok(body) => body,
            Err(back) => {
                mailbox.set_aside(back);
                return None;
            }
        };
        let looked = look(&mut body);
        mailbox.at_rest = Some(body.into());
        Some(looked)
    }

    /// Returns the number of queued deliveries.
    pub(crate) fn waiting(&self) -> usize {
        self.mailbox.lock().queue.len()
    }
}

/// Sends the body to the first task that is still waiting for it. Returns the body if there is no such task.
fn pass_to_freezer(mailbox: &mut Mailbox, body: Box<Body>) -> Option<Box<Body>> {
    let mut body = body;
    while let Some(freezer) = mailbox.next_freezer() {
        match freezer.send(body) {
            Ok(()) => {
                mailbox.mode = Mode::Frozen;
                mailbox.scheduled = false;
                return None;
            }
            Err(back) => body = back,
        }
    }
    Some(body)
}

impl Executing for Bee {
    fn nudge(self: Arc<Self>, turn: &mut Turn) {
        let mut mailbox = self.mailbox.lock();
        // if there is no body, a thread is running the bee and will check the log again before it puts the
        // body back
        if mailbox.at_rest.is_some() && !std::mem::replace(&mut mailbox.scheduled, true) {
            drop(mailbox);
            turn.schedule(self);
        }
    }
}

impl Runnable for Bee {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn has_held_lately(&self, now: Time) -> bool {
        self.app.handlers.iter().any(|handler| handler.has_held_lately(now))
    }

    fn run(self: Arc<Self>, turn: &mut Turn) {
        let (at_rest, mut queue, waited_for) = {
            let mut mailbox = self.mailbox.lock();
            // if there is no body, the bee was frozen, ended or taken by another thread after being scheduled
            let Some(at_rest) = mailbox.at_rest.take() else { return };
            (at_rest, std::mem::take(&mut mailbox.queue), mailbox.is_waited_for())
        };
        let mut body = match at_rest.wake(&self.app, self.id) {
            Ok(body) => body,
            Err(back) => return self.set_aside(back, queue, turn),
        };

        turn.local::<Local>(self.app.index).lend(&self.app, &mut body.app);
        body.reconcile(&self, &mut queue, turn);
        self.run_body(body, queue, waited_for, turn)
    }
}

impl Bee {
    /// Runs a delivery with the current settings. `run` catches the handler's own panics. This method catches
    /// all others, for example when dropping or encoding a value panics, so that the body is not lost.
    #[inline]
    fn run_one(self: &Arc<Self>, body: &mut Body, delivery: Delivery, turn: &mut Turn) {
        let run = delivery.run;
        if self.app.has_settings && body.settings != self.app.settings.version() {
            panics::to_the_end(|| body.settings = self.app.settings.adopt(&mut body.app))
        }
        if let Err(panic) = panics::catch(AssertUnwindSafe(|| run(self, body, delivery, turn))) {
            let why = panics::text(&*panic);
            tracing::error!(app = self.app.name, bee = %self.id, %why, "panic outside a handler, while a value was dropped or encoded");
            turn.discard();
        }
    }

    /// Puts back the image of a bee that cannot be decoded, and its messages.
    #[cold]
    fn set_aside(self: &Arc<Self>, asleep: Box<Asleep>, mut queue: Queue, turn: &mut Turn) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.mode == Mode::Unhosted {
            drop(mailbox);
            return self.lose(asleep.into(), queue, turn.hive);
        }
        queue.append(&mut mailbox.queue);
        std::mem::swap(&mut queue, &mut mailbox.queue);
        mailbox.set_aside(asleep);
        if mailbox.mode != Mode::Leaving {
            return;
        }
        // it cannot leave, either
        mailbox.mode = Mode::Active;
        let leaves = mailbox.rare.as_mut().and_then(|rare| rare.leaves.take());
        drop(mailbox);
        drop(leaves)
    }

    /// Puts the body back once the hive is over, and drops the queued deliveries, which returns their
    /// credits.
    #[cold]
    fn give_up(&self, body: Box<Body>, queue: Queue) {
        let mut mailbox = self.mailbox.lock();
        mailbox.at_rest = Some(body.into());
        mailbox.scheduled = false;
        let more = std::mem::take(&mut mailbox.queue);
        // dropping these requests ends any merge that is waiting for the body
        let freezers = mailbox.rare.as_mut().map(|rare| {
            let Rare { freezers, leaves, .. } = &mut **rare;
            (std::mem::take(freezers), leaves.take())
        });
        drop(mailbox);
        drop((queue, more, freezers))
    }

    /// Runs the queued deliveries and all deliveries that arrive meanwhile, and then puts the body back.
    fn run_body(
        self: Arc<Self>,
        mut body: Box<Body>,
        mut queue: Queue,
        mut waited_for: bool,
        turn: &mut Turn,
    ) {
        loop {
            // the log whose crash marker too many threads are waiting for
            let mut parks: Option<Arc<Link>> = None;
            // start no delivery while a task is waiting for the body, so that the log can decide all pending
            // records
            while !waited_for
                && !turn.hive.is_over()
                && !body.has_lost_log()
                && let Some(delivery) = queue.pop_front()
            {
                parks = body.parks_before(&delivery, self.app.index);
                if parks.is_some() {
                    queue.push_front(delivery);
                    break;
                }
                self.run_one(&mut body, delivery, turn);
                body.reconcile(&self, &mut queue, turn);
                if turn.is_over() {
                    break;
                }
            }

            if turn.hive.is_over() {
                return self.give_up(body, queue);
            }

            // from here on, the body may go to the mailbox or to the queen
            debug_assert!(turn.ctx().out.is_empty(), "outputs are delivered before the body is given back");
            let mut mailbox = self.mailbox.lock();
            if body.has_lost_log() {
                drop(mailbox);
                return self.lose(body.into(), queue, turn.hive);
            }
            if !queue.is_empty() {
                // deliveries that arrived meanwhile go behind the remaining ones
                queue.append(&mut mailbox.queue);
                std::mem::swap(&mut queue, &mut mailbox.queue)
            }

            if body.is_behind() {
                std::mem::swap(&mut queue, &mut mailbox.queue);
                drop(mailbox);
                body.reconcile(&self, &mut queue, turn);
                continue;
            }

            match leaving::pass_on(&mut mailbox, body) {
                None => {
                    drop(mailbox);
                    return turn.hive.displace();
                }
                Some(back) => body = back,
            }

            waited_for = mailbox.is_waited_for();
            if waited_for && body.is_settled() {
                match pass_to_freezer(&mut mailbox, body) {
                    None => {
                        drop(mailbox);
                        return turn.hive.displace();
                    }
                    Some(back) => body = back,
                }
                waited_for = false;
            }

            if mailbox.queue.is_empty() || waited_for || parks.is_some() {
                let spare = if mailbox.queue.is_empty() {
                    std::mem::take(&mut mailbox.queue)
                } else {
                    Queue::default()
                };
                let local = turn.local::<Local>(self.app.index);
                let is_empty = local.take_back(&mut body.app);
                mailbox.scheduled = false;
                let note = is_empty && body.is_settled() && !std::mem::replace(&mut mailbox.idle_noted, true);

                mailbox.at_rest = Some(body.into());
                drop(mailbox);
                local.keep(spare);
                local.keep(queue);
                if note {
                    self.app.note_idle(&self)
                }
                if let Some(link) = parks {
                    self.park(&link, turn)
                }
                return;
            }

            if turn.is_over() {
                mailbox.at_rest = Some(body.into());
                drop(mailbox);
                turn.schedule(self);
                return;
            }

            std::mem::swap(&mut queue, &mut mailbox.queue);
        }
    }
}
