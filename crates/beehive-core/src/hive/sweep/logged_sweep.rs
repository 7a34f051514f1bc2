//! Sweeps of journaled apps. A cursor in the log moves over the cells, one step at a time.
//!
//! A sweep starts in its sender's record, and then advances in steps. A step's record names the next cells
//! and the cursor's new position. When this record is committed, the sweep visits these cells. A visit's
//! record contains both the bee's changes and the visited cells. Therefore each cell's visit takes effect
//! exactly once, even across a crash.
//!
//! A running sweep is an entry in its sender's queue. The sender's later messages to a cell wait behind it
//! until the cursor has passed that cell and its visit has been sent.
//!
//! The sender may be in another log. Then the sweep is in the log of the app that it visits, and the message that began it stays
//! in the outbox of its sender until the sweep is over. After a crash, its place there is the place of the sweep, before
//! everything that the sender has sent later, also on the lane of another bee into which it has merged.
//!
//! Each log of the app has a window of visits that are not yet committed. If the window of a bee's log is full, the cursor
//! passes the bee's cells, and their visits are kept back until the log commits (`progress.rs`, `windows.rs`). So a log that
//! commits nothing does not hold up the visits of bees in other logs.

use crate::app::{Handlers, Handles};
use crate::cell::{CellId, CellSet, HiveId, Outcome};
use crate::hive::admission::credits::Cause;
use crate::hive::admission::offices::Office;
use crate::hive::admission::outside_lanes::Numbers;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::{Delivery, RunDelivery};
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::pending::acknowledge as acknowledge_delivery;
use crate::hive::consensus::journal::{AppId, Emit, HandlerId, InputRuns, MessageId, Record, Suspect, Sweep};
use crate::hive::consensus::open_sweeps::has_own_number;
use crate::hive::consensus::quarantine::{Begun, set_aside};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::blocked::{Blocked, Owners};
use crate::hive::dispatch::sender::ordered_release::acknowledge;
use crate::hive::dispatch::turn::{Link, Place, Turn};
use crate::hive::dispatch::types::handler::{Handler, LoggedName, map};
use crate::hive::message::batch::{Batch, Source};
use crate::hive::message::payloads::Payloads;
use crate::hive::route::receiver::route;
use crate::hive::run::dropped::verify_visit;
use crate::hive::run::journaled::{Draft, Steps, record};
use crate::hive::run::results::{end_with_error, release};
use crate::hive::run::transaction::{Run, execute};
use crate::hive::sweep::open_visits::OpenVisits;
use crate::hive::sweep::opening::{Opening, number_of_its_own};
use crate::hive::sweep::progress::{Progress, Unvisited};
use crate::hive::sweep::unlogged_sweep::{Visit, is_here, sweep_emit, visits_of};
use crate::hive::sweep::windows::Windows;
use crate::key::Key;
use crate::limits;
use crate::message::{Each, Error, Message};
use crate::mutant::Mutant;
use crate::seams::BoxFuture;
use crate::state::any::{self, AnyState};
use crate::state::image::{DecodeError, decode};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Pause before the cells of bees that may leave are visited again.
const PAUSE: Duration = Duration::from_millis(1);

/// A running sweep.
struct Cursor<M: Message> {
    app: Arc<AppRuntime>,
    link: Arc<Link>,
    /// The id of the sweep in the log.
    sweep: MessageId,
    /// The message that has begun the sweep, as its sender has sent it.
    sent_as: MessageId,
    visit: Arc<Visit<M>>,
    open_visits: Arc<OpenVisits>,
    /// Runs a visit in its bee.
    run: RunDelivery,
    /// The cause of the visits; `None` for a sweep resumed after a crash.
    cause: Option<Arc<Cause>>,
    progress: Mutex<Progress>,
    /// The windows of the app's logs; empty if the app has one log.
    windows: Mutex<Windows<M>>,
}

/// The next work of a sweep.
struct Due {
    /// Cells whose visits were kept back, and have room now.
    kept_back: Vec<CellId>,
    /// Whether the cursor may move on.
    moves_on: bool,
}

/// Starts the sweep for message `index` of a batch, either immediately or when the record under construction
/// is committed.
pub(crate) fn begin<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message>(
    app: &Arc<AppRuntime>,
    (batch, index): (&Arc<Batch<M>>, u32),
    visit: Arc<Visit<M>>,
    run: RunDelivery,
    cx: &mut RouteContext,
) {
    let Some(link) = cx.turn.hive.log_of(AppId(app.index)) else { return };
    let message_id = batch.source.message_id(index, app.index);
    let admitted = batch.admitted.clone();
    if let Some(admitted) = &admitted {
        admitted.open()
    }

    // the handler is part of the sweep's id, because several handlers of one app may each start a sweep for the same
    // message
    let handler = HandlerId::from(LoggedName::of_sweep::<A, K, M>().number());
    let sweep = Numbers::sweep(message_id, handler).id(0, AppId(app.index));
    let Some(emit) = sweep_emit::<A, K, M>(app, &**batch, index, sweep, None, None, &mut Payloads::default())
    else {
        return;
    };
    let emit = Emit { is_sweep: true, ..emit };

    let reserved = number_of_its_own(&link, app.index);
    let runs_as = reserved.as_ref().map_or(sweep, |reserved| reserved.id);
    // the sender's record may go to another log and emit the sweep there; if so, the sweep starts only when
    // its own log contains it
    let mut first = Some((emit.clone(), reserved));
    let later = if cx.is_held() && link.acknowledges(sweep.lane) { first.take() } else { None };

    let sent_as = if cx.is_held() { sweep } else { message_id };
    let opening = match cx.held() {
        Some(effects) => {
            effects.emits.push(emit);
            None
        }
        None => {
            match first.and_then(|first| Opening::of(&link, message_id, handler, admitted.clone(), first)) {
                Some(opening) => Some(opening),
                None => {
                    admitted.iter().for_each(|admitted| admitted.close());
                    return acknowledge(&link, message_id, cx.turn.hive);
                }
            }
        }
    };

    let open_visits = Arc::new(match link.acknowledges(sent_as.lane) {
        true => OpenVisits::of_whole(None),
        false => OpenVisits::default(),
    });
    let Some(visit) = Arc::into_inner(visit) else { return };
    let cursor = Arc::new(Cursor {
        app: app.clone(),
        link,
        sweep: runs_as,
        sent_as,
        visit: Arc::new(Visit { open_visits: Some((runs_as, open_visits.clone())), ..visit }),
        open_visits,
        run,
        cause: cx.turn.cause.clone(),
        progress: Mutex::new(Progress::new(opening, Some(CellId(0)))),
        windows: Mutex::default(),
    });

    match cx.held() {
        Some(effects) => effects.hold(move |cx| {
            cursor.progress.lock().opening =
                later.and_then(|later| Opening::of(&cursor.link, sweep, handler, None, later));
            cursor.wait_at(cx)
        }),
        None => cursor.wait_at(cx),
    }
}

/// Resumes an unfinished sweep from the log at position `log`. Visits its open cells again and continues at
/// its cursor. If this log contains the sweep only as a message emitted by its sender, first starts the sweep
/// in `app`'s log, unless it has already been started there.
///
/// # Errors
///
/// Returns an error if the sweep's message cannot be decoded.
pub(crate) fn resume<M: Message>(
    app: &Arc<AppRuntime>,
    handler: HandlerId,
    (log, sweep): (usize, &Sweep),
    run: RunDelivery,
    cx: &mut RouteContext,
) -> Result<(), DecodeError> {
    let emit = &sweep.waiting.emit;
    let messages = vec![decode::<M>("the message of a sweep", &emit.payload)?];
    let batch = Batch::new(messages, Source::again(emit));
    let Some(home) = cx.turn.hive.log_of(AppId(app.index)) else { return Ok(()) };

    let has_begun = match home.bees_move() {
        // those that began without a number of their own have got one: see `begun_sweeps`
        true => has_own_number(&emit.id),
        false => log == home.position(),
    };
    // another hive may have begun it in a log that this hive leads now
    let link = cx.turn.hive.log_at(log).filter(|_| has_begun).unwrap_or(home);

    let reserved = if has_begun { None } else { number_of_its_own(&link, app.index) };
    let runs_as = reserved.as_ref().map_or(emit.id, |reserved| reserved.id);
    let opening = match has_begun {
        true => None,
        false => match Opening::of(&link, emit.id, handler, None, (emit.clone(), reserved)) {
            Some(opening) => Some(opening),
            None => {
                // it is over, and its acknowledgment was lost
                link.quarantine.swept(&emit.id);
                acknowledge(&link, emit.id, cx.turn.hive);
                return Ok(());
            }
        },
    };

    let open_visits = Arc::new(OpenVisits::of_whole(Some((link.clone(), emit.id))));
    let Some(visit) = Visit::new(&batch, 0, Some((runs_as, open_visits.clone()))) else { return Ok(()) };
    let cursor = Arc::new(Cursor {
        app: app.clone(),
        link,
        sweep: runs_as,
        sent_as: sweep.began_by.filter(|_| has_begun).unwrap_or(emit.id),
        visit: Arc::new(visit),
        open_visits,
        run,
        cause: None,
        progress: Mutex::new(Progress::new(opening, sweep.next)),
        windows: Mutex::default(),
    });

    let open: Vec<CellId> = sweep.open.iter().copied().collect();
    let unvisited = cursor.send_visits(&open, cx.turn);
    cursor.progress.lock().note(unvisited);
    cursor.wait_at(cx);
    Ok(())
}

impl<M: Message> Cursor<M> {
    /// Adds the sweep to the sender's queue, which drives its steps from there.
    fn wait_at(self: Arc<Self>, cx: &mut RouteContext) {
        // the sweep itself counts as one visit, which ends last
        self.visit.expect(1);
        cx.queue.block(Box::new(Waiting(self)), cx.turn.hive)
    }

    /// Commits the start of the sweep if that has not been done yet. Otherwise commits the next step and
    /// sends its visits.
    ///
    /// The cursor moves only after the visits are in the mailboxes. The sender's later messages to a cell are
    /// delivered only once the cursor has passed the cell, so they arrive after its visit.
    async fn step(self: Arc<Self>, hive: Arc<HiveInner>) {
        let opening = self.progress.lock().opening.take();
        if let Some(opening) = opening {
            return opening.commit(&self.link, &hive).await;
        }

        let Some(Due { kept_back, moves_on }) = self.due(&hive).await else { return };

        if !kept_back.is_empty() {
            let unvisited = Turn::with(&hive, Place::Runners, |turn| self.send_visits(&kept_back, turn));
            self.progress.lock().note_sent(&kept_back, unvisited)
        }

        let later = std::mem::take(&mut self.progress.lock().later);
        if !later.is_empty() {
            hive.platform.sleep(PAUSE).await;
            let unvisited = Turn::with(&hive, Place::Runners, |turn| self.send_visits(&later, turn));
            self.progress.lock().note(unvisited)
        }
        let (first, gone) = {
            let progress = self.progress.lock();
            (progress.next, progress.gone())
        };

        let (mut owners, mut next) = (Vec::new(), first);
        while moves_on
            && let Some(first) = next
            && owners.len() < limits::SWEEP_STEP_MAX
        {
            let (more, then) = self.app.routes.next_cells(first, limits::SWEEP_STEP_MAX - owners.len());
            owners.extend(more);
            next = then
        }

        if !owners.is_empty() || !gone.is_empty() || (next.is_none() && first.is_some()) {
            let cells = owners.iter().map(|(cell, _)| *cell).collect();
            let record = Record::Expand { sweep: self.sweep, cells, gone: gone.clone(), next };
            if !self.link.commit(record).await {
                return;
            }
            self.progress.lock().note_removed(&gone);
            self.link.lanes.bees.swept([self.sent_as, self.sweep])
        }
        if hive.is_over() {
            return;
        }

        let unvisited = Turn::with(&hive, Place::Runners, |turn| {
            let mut unvisited = Unvisited::behind(self.progress.lock().full_logs());
            // a bee that has ended since the step began refuses its visit
            let refused = self.send_to(owners, &mut unvisited, turn);
            self.find_and_send(refused, &mut unvisited, turn);
            unvisited
        });
        let mut progress = self.progress.lock();
        progress.note(unvisited);
        progress.next = next
    }

    /// Waits until there is something to do. Returns `None` if the hive is over, or no longer leads the sweep's log.
    async fn due(&self, hive: &Arc<HiveInner>) -> Option<Due> {
        if !self.app.has_several_logs() {
            self.open_visits.room().await;
            return Some(Due { kept_back: Vec::new(), moves_on: true });
        }

        loop {
            let fewer = self.open_visits.fewer();
            if self.link.is_deposed() {
                return None;
            }
            {
                let (mut progress, windows) = (self.progress.lock(), self.windows.lock());
                let kept_back = progress.take_kept_back(|log| windows.has_room(log));
                let moves_on = progress.may_move_on() && windows.any_has_room(self.app.log_count());
                if moves_on || !kept_back.is_empty() || !progress.waits_for_room() {
                    return Some(Due { kept_back, moves_on });
                }
            }
            tokio::select! {
                biased;
                () = fewer => {}
                () = hive.over() => return None,
            }
        }
    }

    /// Checks whether the sweep has committed all its own records, or this hive goes on with it no longer. Its visits may still be
    /// uncommitted.
    fn is_over(&self) -> bool {
        if self.link.is_deposed() {
            // the next leader of the log goes on with it
            return true;
        }
        self.progress.lock().is_over()
    }

    /// Sends one visit to each bee that owns some of these cells. Returns the cells that it could not visit.
    fn send_visits(&self, cells: &[CellId], turn: &mut Turn) -> Unvisited {
        let mut unvisited = Unvisited::default();
        self.find_and_send(cells.to_vec(), &mut unvisited, turn);
        unvisited
    }

    /// Looks up the owners of these cells and sends the visits, until no bee refuses one because it has ended meanwhile.
    fn find_and_send(&self, mut left: Vec<CellId>, unvisited: &mut Unvisited, turn: &mut Turn) {
        while !left.is_empty() {
            let mut owners = Vec::with_capacity(left.len());
            for cell in left {
                match self.app.routes.find(cell) {
                    Some(bee) => owners.push((cell, bee)),
                    None => unvisited.gone.push(cell),
                }
            }
            left = self.send_to(owners, unvisited, turn)
        }
    }

    /// Sends one visit to each of these bees. Returns the cells of bees that have ended.
    fn send_to(
        &self,
        mut owners: Vec<(CellId, Arc<Bee>)>,
        unvisited: &mut Unvisited,
        turn: &mut Turn,
    ) -> Vec<CellId> {
        let mut ended = Vec::new();
        // each bee gets one visit, whose cells are in order, because `visits_of` uses a binary search. A bee occurs only once
        // as the owner of its first cell
        if !owners.iter().all(|(cell, bee)| bee.first_cell() == *cell) {
            owners.sort_unstable_by_key(|(cell, bee)| (bee.id, *cell))
        }

        for visited in owners.chunk_by(|(_, one), (_, next)| one.id == next.id) {
            let Some((_, bee)) = visited.first() else { continue };
            let cells: CellSet = visited.iter().map(|(cell, _)| *cell).collect();
            let count = cells.len();
            let visit = match self.app.has_several_logs() {
                false => self.visit.clone(),
                true => match self.visit_within(bee, &cells, unvisited, turn.hive) {
                    Some(visit) => visit,
                    None => continue,
                },
            };
            if let Some((_, open_visits)) = &visit.open_visits {
                open_visits.begin(count)
            }
            self.visit.expect(1);

            let delivery = Delivery {
                run: self.run,
                batch: visit,
                office: Office::NONE,
                back: None,
                cause: self.cause.clone(),
                first: 0,
                count: 0,
                position: None,
                cells,
            };

            if let Err(refused) = bee.clone().push(delivery, turn) {
                refused.batch.committed(count);
                self.visit.done();
                if bee.is_leaving() {
                    unvisited.later.extend(refused.cells);
                    continue;
                }
                // another thread has merged or retired the bee since it was looked up, or it stays after all
                ended.extend(refused.cells);
                std::hint::spin_loop()
            }
        }
        ended
    }

    /// Returns the visit of a bee, which counts in the window of the bee's log. If this window has no room for the visit, or if earlier
    /// cells of the log are kept back, keeps back these cells, too, and returns `None`.
    fn visit_within(
        &self,
        bee: &Bee,
        cells: &CellSet,
        unvisited: &mut Unvisited,
        hive: &HiveInner,
    ) -> Option<Arc<Visit<M>>> {
        let Some(log) = bee.log() else { return Some(self.visit.clone()) };
        let has_turn = !unvisited.is_full(log);
        let visit = has_turn
            .then(|| self.windows.lock().visit_within(log, cells.len(), &self.visit, || hive.log_at(log)));
        let visit = visit.flatten();
        if visit.is_none() {
            unvisited.keep_back(log, cells)
        }
        visit
    }
}

/// Acknowledges the message that has begun a sweep when `link`, the log of the sweep, says that the sweep is over.
async fn acknowledge_at_end(
    link: Arc<Link>,
    open_visits: Arc<OpenVisits>,
    sent_as: MessageId,
    hive: Arc<HiveInner>,
) {
    tokio::select! {
        biased;
        () = open_visits.ended() => {}
        () = hive.over() => return,
    }
    // the last visits may only be noted yet
    if link.log_visits().await.is_ok() {
        acknowledge(&link, sent_as, &hive)
    }
}

/// A sweep waiting in its sender's queue until the cursor has passed all cells.
struct Waiting<M: Message>(Arc<Cursor<M>>);

impl<M: Message> Blocked for Waiting<M> {
    fn app(&self) -> u16 {
        self.0.app.index
    }

    fn cells(&self) -> &[CellId] {
        &[]
    }

    fn is_sweep(&self) -> bool {
        true
    }

    fn has_passed(&self, cells: &[CellId]) -> bool {
        if self.0.link.lanes.breaks(Mutant::EachOvertaken) {
            return true;
        }
        self.0.progress.lock().has_passed(cells)
    }

    fn try_deliver(self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Blocked>> {
        if !self.0.is_over() {
            return Err(self);
        }
        let cursor = &*self.0;
        cursor.open_visits.reached_all();
        cursor.visit.done();
        if cursor.link.acknowledges(cursor.sent_as.lane) {
            let (link, open_visits) = (cursor.link.clone(), cursor.open_visits.clone());
            let (sent_as, hive) = (cursor.sent_as, turn.hive.clone());
            turn.hive.spawn(Box::pin(acknowledge_at_end(link, open_visits, sent_as, hive)))
        }
        Ok(())
    }

    fn owners(&self) -> Option<Arc<dyn Owners>> {
        Some(self.0.clone())
    }
}

/// The sender's queue calls these methods to find owners for a blocked entry. A sweep waits not for an owner
/// but for its own progress, so `unite` takes its next step.
impl<M: Message> Owners for Cursor<M> {
    fn ask(self: Arc<Self>, _: Vec<CellSet>, _: &Arc<HiveInner>) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }

    fn unite(self: Arc<Self>, _: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        Box::pin(self.step(hive.clone()))
    }
}

/// Runs the handler for each entry of the visited cells that the bee owns, in key order, and makes one record
/// for all these runs.
pub(crate) fn run_visit<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message>(
    bee: &Arc<Bee>,
    body: &mut Body,
    delivery: Delivery,
    turn: &mut Turn,
) {
    let visit = (delivery.batch.clone() as Arc<dyn std::any::Any + Send + Sync>).downcast::<Visit<M>>();
    let (Ok(visit), Some(pending)) = (visit, &mut body.pending) else { return };
    let app = &bee.app;
    // this is `None` for a tick, which no log contains
    let sweep = visit.open_visits.as_ref().map(|(sweep, _)| *sweep);
    let is_numbered =
        sweep.is_some() && pending.link().bees_move() && !pending.link().lanes.breaks(Mutant::Visited);
    let (cells, inputs) = match sweep {
        Some(sweep) if is_numbered => pending.take_note_of_visits(sweep, &delivery.cells),
        _ => (delivery.cells.clone(), InputRuns::new()),
    };

    if is_numbered && cells.is_empty() && pending.is_settled() {
        // this bee has already handled these visits, and a committed record says so
        acknowledge_delivery(pending.link(), &delivery, app.index, turn.hive);
        visit.done();
        return delivery.batch.committed(delivery.cells.len());
    }

    let quarantined = pending.link().quarantine.is_any().then(|| pending.link().clone());
    // the cells still count as visited
    let mut lost = |_: &Error, _: &mut Draft, cx: &mut RouteContext| hold_done(&visit, cx);
    let mut run = |state: &mut dyn AnyState, draft: &mut Draft, now, cx: &mut RouteContext| {
        let numbers = cx.held().map_or(Numbers::NONE, |effects| effects.numbers);
        let batch = visits_of::<A, K, M>(bee, state, &cells, &visit, numbers);
        let count = batch.messages.len();
        if let Some(effects) = cx.held() {
            // reserve numbers for messages routed to other bees
            effects.numbers.take(count);
        }
        if visit.report.is_some()
            && let Some(effects) = cx.held()
        {
            let visit = visit.clone();
            effects.hold_report(move |_| visit.expect(count))
        }

        let origin = batch.source.origin;
        let mut mapper = app.mapper(origin);
        for index in 0..count as u32 {
            let Some(message) = batch.messages.get(index as usize) else { break };
            mapper.clear();
            if map::<A, Each<K, M>>(message, &mut mapper) == Outcome::Drop {
                verify_visit::<A, Each<K, M>>(app, &batch, index, cx.turn);
                hold_done(&visit, cx);
                continue;
            }

            let one = index..index + 1;
            if is_here(bee, mapper.cells()) {
                let (cell, by) = (mapper.cells().first().copied(), (app.index, A::HANDLER));
                let begun = quarantined.as_ref().zip(sweep).map(|(link, sweep)| {
                    let suspect = |cell| Suspect { id: sweep, cell };
                    let later = batch.messages.get(index as usize + 1..).unwrap_or_default();
                    let next = || {
                        later
                            .iter()
                            .filter_map(|later| cell_of::<A, K, M>(later, origin, bee))
                            .map(|cell| suspect(Some(cell)))
                    };
                    let suspect = suspect(cell);
                    link.quarantine.begin(link, (&**cx.turn.hive, cx.turn.slot), by, suspect, next)
                });
                if let Some(Begun::Deposed) = begun {
                    continue;
                }
                if let Some(Begun::SetAside) = begun {
                    let error = set_aside();
                    let by = Handler::of::<A, Each<K, M>>(app);
                    end_with_error(&by, &batch, index, None, &error, cx);
                    continue;
                }
                let run = &Run { app, bee: Some(bee.id), cells: mapper.cells(), position: None, now };
                let done =
                    execute::<A, Each<K, M>>(run, any::of(state), (&batch, one), Some(&mut draft.redo), cx);
                release::<A, Each<K, M>>(run, &batch, done, cx)
            } else {
                // the handler also needs other bees' cells
                route::<A, Each<K, M>>(app, &batch, one, None, cx)
            }
        }

        hold_done(&visit, cx)
    };

    // if the visits are numbered, the record contains them as inputs instead
    let (may_repeat, sweep) = (sweep.is_some(), sweep.filter(|_| !is_numbered));
    let mut steps = Steps { run: &mut run, lost: &mut lost, sweep, may_repeat };
    record(bee, body, (delivery, inputs), &mut steps, turn)
}

/// Returns the cell under which a message of a visit runs, or `None` if `bee` does not run it.
fn cell_of<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message>(
    message: &Each<K, M>,
    origin: HiveId,
    bee: &Arc<Bee>,
) -> Option<CellId> {
    let mut mapper = bee.app.mapper(origin);
    if map::<A, Each<K, M>>(message, &mut mapper) == Outcome::Drop {
        return None;
    }
    mapper.cells().first().copied().filter(|_| is_here(bee, mapper.cells()))
}

/// Marks one visit as done when the record is committed, if a requester waits for the sweep.
fn hold_done<M: Message>(visit: &Arc<Visit<M>>, cx: &mut RouteContext) {
    if visit.report.is_some()
        && let Some(effects) = cx.held()
    {
        let visit = visit.clone();
        effects.hold_report(move |_| visit.done())
    }
}
