//! A bee: the one logical thread that owns a set of cells of one app.
//!
//! Its body (state and all that goes with it) lies in its mailbox while it is idle. Whoever takes the body out runs the
//! bee; nobody else can. An idle bee is no task and holds no lock.

use crate::app::App;
use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::{Body, Local};
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::mailbox::{Mailbox, Mode, Queue, Rare};
use crate::hive::dispatch::turn::{Executing, Runnable, Turn};
use crate::panics;
use crate::state::column::Columns;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Whether a bee that had become idle has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Retirement {
    Ended,
    /// It has something to do, or something in its cells.
    Busy,
    /// It will, unless it gets something to do.
    Later,
    /// It will when timers that it has set have rung: its cell's next bee would not know of them.
    WithItsTimers,
}

pub(crate) struct Bee<A: App> {
    pub(crate) id: BeeId,
    first_cell: CellId,
    pub(crate) app: Arc<AppRuntime<A>>,
    mailbox: Mutex<Mailbox<A>>,
}

impl<A: App> Bee<A> {
    pub(crate) fn new(app: &Arc<AppRuntime<A>>, id: BeeId, cells: &[CellId], body: Body<A>) -> Arc<Bee<A>> {
        let first_cell = cells.first().copied().unwrap_or(CellId(0));
        let more = cells.get(1..).filter(|more| !more.is_empty());
        Arc::new(Bee {
            id,
            first_cell,
            app: app.clone(),
            mailbox: Mutex::new(Mailbox {
                mode: Mode::Active,
                scheduled: false,
                waits_at: 0,
                idle_noted: false,
                body: Some(Box::new(body)),
                queue: Queue::default(),
                rare: more
                    .map(|more| Box::new(Rare { more_cells: more.to_vec(), freezers: VecDeque::new() })),
            }),
        })
    }

    /// The cell that stands for the bee when bees are enumerated: one that it never gives up while it lives.
    pub(crate) fn first_cell(&self) -> CellId {
        self.first_cell
    }

    /// Hands over a run of messages. Refused if the bee is no more: the sender routes again.
    #[inline]
    pub(crate) fn push(self: Arc<Self>, delivery: Delivery<A>, turn: &mut Turn) -> Result<(), Delivery<A>> {
        let mut mailbox = self.mailbox.lock();
        match mailbox.mode {
            Mode::Active => {
                if mailbox.queue.0.is_none() {
                    mailbox.queue = Queue(turn.local::<Local<A>>(self.app.index).queues.pop())
                }
                mailbox.queue.push_back(delivery);
                let first = !std::mem::replace(&mut mailbox.scheduled, true);
                // it waits at another thread, which may not get to run for a while: a worker that runs bees itself does
                // not wait for it. Who comes later finds nothing to do.
                let stranded =
                    mailbox.body.is_some() && turn.follows() && mailbox.waits_at != turn.slot as u16;
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
            Mode::Gone => Err(delivery),
        }
    }

    /// Takes the body out as soon as no handler runs; messages wait from now on. Nothing if the bee is no more.
    pub(crate) async fn freeze(self: &Arc<Self>) -> Option<Box<Body<A>>> {
        let waiting = {
            let mut mailbox = self.mailbox.lock();
            if mailbox.mode == Mode::Gone {
                return None;
            }
            match mailbox.body.take() {
                // also when it is scheduled: the turn will find no body, and whoever thaws schedules again
                Some(body) if body.is_settled() => {
                    mailbox.mode = Mode::Frozen;
                    return Some(body);
                }
                // running, or something it did has yet to be committed
                body => {
                    mailbox.body = body;
                    let (sender, receiver) = oneshot::channel();
                    mailbox.rare.get_or_insert_default().freezers.push_back(sender);
                    receiver
                }
            }
        };
        waiting.await.ok()
    }

    /// Puts the body back, or hands it to the next who waits for it.
    pub(crate) fn thaw(self: &Arc<Self>, body: Box<Body<A>>, turn: &mut Turn) {
        let mut mailbox = self.mailbox.lock();
        debug_assert_eq!(
            mailbox.mode,
            Mode::Frozen,
            "only a frozen bee is thawed; one that is gone stays gone"
        );

        let Some(body) = pass_to_freezer(&mut mailbox, body) else { return };
        mailbox.mode = Mode::Active;
        mailbox.body = Some(body);
        mailbox.scheduled = !mailbox.queue.is_empty();
        if mailbox.scheduled {
            drop(mailbox);
            turn.schedule(self.clone());
        }
    }

    /// The cells it owns, without the first `known`, and how many there are. A bee only ever gets more of them.
    pub(crate) fn cells_after(&self, known: usize) -> (Vec<CellId>, usize) {
        let mailbox = self.mailbox.lock();
        let more = mailbox.more_cells();
        (std::iter::once(self.first_cell).chain(more.iter().copied()).skip(known).collect(), more.len() + 1)
    }

    /// Whether the bee is gone, as far as can be told without waiting for its mailbox. For assertions under other locks.
    pub(crate) fn may_be_gone(&self) -> bool {
        self.mailbox.try_lock().is_none_or(|mailbox| mailbox.mode == Mode::Gone)
    }

    /// How many cells it owns.
    pub(crate) fn cells_owned(&self) -> usize {
        self.mailbox.lock().more_cells().len() + 1
    }

    /// Gives the bee, which has been told so by the registry, another cell that it did not own. Not if it is no more.
    pub(crate) fn own(&self, cell: CellId) -> bool {
        let mut mailbox = self.mailbox.lock();
        if mailbox.mode == Mode::Gone {
            return false;
        }
        mailbox.rare.get_or_insert_default().more_cells.push(cell);
        true
    }

    /// Takes over cells and waiting messages of `from`, which ends; both are frozen. Returns the cells. Others who
    /// wanted the body of `from` learn that it is no more.
    pub(crate) fn take_over(&self, from: &Bee<A>) -> Vec<CellId> {
        let (rare, mut queue) = {
            let mut mailbox = from.mailbox.lock();
            debug_assert!(
                mailbox.mode == Mode::Frozen && mailbox.body.is_none(),
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

    /// Ends the bee if it is idle, has nothing to do and owns nothing but empty cells, and if nothing that it has handled
    /// may be sent again. `release` runs before anybody can be refused, so that whoever is refused finds the cells without
    /// an owner; it is told the floors below which everything is that the bee has seen.
    pub(crate) fn retire(&self, release: impl FnOnce(&[CellId], Vec<(u64, u64)>)) -> Retirement {
        let mut mailbox = self.mailbox.lock();
        mailbox.idle_noted = false;
        if mailbox.mode != Mode::Active
            || mailbox.scheduled
            || !mailbox.queue.is_empty()
            || mailbox.is_waited_for()
        {
            return Retirement::Busy;
        }
        let mailbox = &mut *mailbox;
        let Some(body) = mailbox.body.as_mut() else { return Retirement::Busy };
        if !body.is_settled() || !body.app.is_empty() {
            return Retirement::Busy;
        }
        if !body.queue.is_empty() {
            // what it sent waits for an owner; nothing else tells when that has gone
            mailbox.idle_noted = true;
            return Retirement::Later;
        }
        if body.queue.is_shared() {
            mailbox.idle_noted = true;
            return Retirement::WithItsTimers;
        }
        let floors = match &body.pending {
            Some(pending) => pending.link().lanes.floors_above(&pending.seen),
            None => Some(Vec::new()),
        };
        let Some(floors) = floors else {
            // what it handled last is not known to be done at its sender
            mailbox.idle_noted = true;
            return Retirement::Later;
        };
        let cells: SmallVec<[CellId; 4]> =
            std::iter::once(self.first_cell).chain(mailbox.more_cells().iter().copied()).collect();
        release(&cells, floors);
        mailbox.mode = Mode::Gone;
        mailbox.body = None;
        Retirement::Ended
    }

    /// Looks at the body if the bee is idle.
    pub(crate) fn peek<R>(&self, look: impl FnOnce(&mut Body<A>) -> R) -> Option<R> {
        self.mailbox.lock().body.as_mut().map(|body| look(body))
    }

    /// Messages that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.mailbox.lock().queue.len()
    }
}

/// Gives the body to the first who still waits for it; otherwise gives it back.
fn pass_to_freezer<A: App>(mailbox: &mut Mailbox<A>, body: Box<Body<A>>) -> Option<Box<Body<A>>> {
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

impl<A: App> Executing for Bee<A> {
    fn nudge(self: Arc<Self>, turn: &mut Turn) {
        let mut mailbox = self.mailbox.lock();
        // whoever runs it looks again before it puts the body back
        if mailbox.body.is_some() && !std::mem::replace(&mut mailbox.scheduled, true) {
            drop(mailbox);
            turn.schedule(self);
        }
    }
}

impl<A: App> Runnable for Bee<A> {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn run(self: Arc<Self>, turn: &mut Turn) {
        let (mut body, mut queue, waited_for) = {
            let mut mailbox = self.mailbox.lock();
            // frozen or gone since it was scheduled
            let Some(body) = mailbox.body.take() else { return };
            (body, std::mem::take(&mut mailbox.queue), mailbox.is_waited_for())
        };
        turn.local::<Local<A>>(self.app.index).lend(&self.app, &mut body.app);
        body.reconcile(&self, &mut queue, turn);
        self.run_body(body, queue, waited_for, turn)
    }
}

impl<A: App> Bee<A> {
    /// Runs a delivery. Whatever unwinds out of it that is not the handler (a value that panics when it is dropped or
    /// encoded) must not take the body along.
    #[inline]
    fn run_one(self: &Arc<Self>, body: &mut Body<A>, delivery: Delivery<A>, turn: &mut Turn) {
        let run = delivery.run;
        if A::HAS_SETTINGS && body.settings != self.app.settings.version() {
            panics::to_the_end(|| body.settings = self.app.settings.adopt(&mut body.app))
        }
        if let Err(panic) = panics::catch(AssertUnwindSafe(|| run(self, body, delivery, turn))) {
            let why = panics::text(&*panic);
            tracing::error!(app = A::NAME, bee = %self.id, %why, "something that the handler left behind panicked");
            turn.discard();
            let _ = panics::catch(AssertUnwindSafe(|| drop(panic)));
        }
    }

    /// The hive has stopped: what is queued is dropped, with the credits that it holds.
    #[cold]
    fn give_up(&self, body: Box<Body<A>>, queue: Queue<A>) {
        let mut mailbox = self.mailbox.lock();
        mailbox.body = Some(body);
        mailbox.scheduled = false;
        let more = std::mem::take(&mut mailbox.queue);
        // who waits for the body learns that there is none: a merge that waits would wait for ever
        let freezers = mailbox.rare.as_mut().map(|rare| std::mem::take(&mut rare.freezers));
        drop(mailbox);
        drop((queue, more, freezers))
    }

    /// Runs what is queued and what comes meanwhile, and puts the body back.
    fn run_body(
        self: Arc<Self>,
        mut body: Box<Body<A>>,
        mut queue: Queue<A>,
        mut waited_for: bool,
        turn: &mut Turn,
    ) {
        loop {
            // somebody waits for the body: nothing new is begun, so that it settles
            while !waited_for
                && !turn.hive.is_over()
                && let Some(delivery) = queue.pop_front()
            {
                self.run_one(&mut body, delivery, turn);
                body.reconcile(&self, &mut queue, turn);
                if turn.is_over() {
                    break;
                }
            }
            if turn.hive.is_over() {
                return self.give_up(body, queue);
            }
            let mut mailbox = self.mailbox.lock();
            if !queue.is_empty() {
                // what came meanwhile goes behind what is left
                queue.append(&mut mailbox.queue);
                std::mem::swap(&mut queue, &mut mailbox.queue)
            }
            if body.is_behind() {
                std::mem::swap(&mut queue, &mut mailbox.queue);
                drop(mailbox);
                body.reconcile(&self, &mut queue, turn);
                continue;
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
            if mailbox.queue.is_empty() || waited_for {
                let spare = if mailbox.queue.is_empty() {
                    std::mem::take(&mut mailbox.queue)
                } else {
                    Queue::default()
                };
                debug_assert!(
                    turn.ctx().out.is_empty(),
                    "outputs are delivered before the body is given back"
                );

                let local = turn.local::<Local<A>>(self.app.index);
                local.take_back(&mut body.app);
                mailbox.scheduled = false;
                let note = body.app.is_empty()
                    && body.is_settled()
                    && !std::mem::replace(&mut mailbox.idle_noted, true);
                mailbox.body = Some(body);
                drop(mailbox);
                local.keep(spare);
                local.keep(queue);
                if note {
                    self.app.note_idle(&self)
                }
                return;
            }
            if turn.is_over() {
                mailbox.body = Some(body);
                drop(mailbox);
                turn.schedule(self);
                return;
            }
            std::mem::swap(&mut queue, &mut mailbox.queue);
        }
    }
}
