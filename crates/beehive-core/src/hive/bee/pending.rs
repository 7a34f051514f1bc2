//! A journaled bee's executed runs whose records are not yet committed. The effects of each run are held
//! until they are either released in order, or discarded so that the run can be executed again.

use crate::cell::{CellId, CellSet};
use crate::hive::admission::offices::Office;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::{Body, Local};
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::executed::{Executed, Inputs, Unsaid};
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::{
    Acked, AppId, Consumed, DedupTable, EntryNumber, Epoch, Input, InputRuns, LaneId, MessageId, Part, Seq,
    Visited,
};
use crate::hive::consensus::undecided::Fate;
use crate::hive::dispatch::effects::{RouteContext, flush};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Link, Place, Turn};
use crate::hive::message::batch::Messages;
use crate::mutant::Mutant;
use crate::panics;
use crate::state::any::AnyState;
use crate::state::image::{EncodedCells, Op, Redo};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, oneshot};

/// Positions in a batch of the messages that a run executes. Most runs need no allocation for them.
pub(crate) type NewMessages = SmallVec<[u32; 16]>;

/// The uncommitted runs of one bee, and the committed state on which they were executed.
pub(crate) struct PendingRuns {
    /// The client of the bee's log.
    link: Arc<Link>,
    /// Version of the log's decisions at the last call to [`PendingRuns::reconcile`].
    version: u64,
    /// The committed state.
    pub(crate) base: EncodedCells,
    /// Executed messages that may arrive again, whether or not their records are committed.
    pub(crate) seen: DedupTable,
    /// Value of [`Lanes::retirements`](crate::hive::admission::outside_lanes::Lanes::retirements) when
    /// `seen` was last pruned.
    retirements: u64,
    /// The uncommitted runs, oldest first.
    pub(crate) entries: VecDeque<Executed>,
    /// Messages of rolled-back runs, to be executed again before all other messages.
    pub(crate) again: VecDeque<Delivery>,
    /// The next number on the bee's own lane.
    pub(crate) next_seq: Seq,
    /// Number of the bee's cells in the log.
    pub(crate) cells_logged: usize,
    /// Whether the log may contain the bee.
    pub(crate) is_logged: bool,
    /// Lanes of bees that merged into this one. They may have unacknowledged messages.
    pub(crate) heir_of: BTreeSet<LaneId>,
    /// The number of times that the bee has moved from one log to another.
    pub(crate) epoch: Epoch,
    /// The bee's epoch in the registry. It is higher than `epoch` if the bee has moved before its first record, because
    /// no log knows of such a move.
    pub(crate) registry_epoch: Epoch,
    /// Number of logs that the bee has left but that have not dropped it yet. The bee must not end while this
    /// is above zero.
    pub(crate) left: Option<Arc<LogsLeft>>,
}

/// The logs that a bee has left but that have not dropped it yet.
#[derive(Default)]
pub(crate) struct LogsLeft {
    count: AtomicUsize,
    /// Notified when a log has dropped the bee, and when the hive is over.
    fewer: Notify,
}

impl LogsLeft {
    /// Adds a log, and waits until it has dropped the bee. `dropped` fails if the hive is over first.
    pub(crate) fn add(self: Arc<Self>, dropped: oneshot::Receiver<()>) -> impl Future<Output = ()> {
        self.count.fetch_add(1, Ordering::AcqRel);
        async move {
            if dropped.await.is_ok() {
                self.count.fetch_sub(1, Ordering::AcqRel);
            }
            self.fewer.notify_waiters()
        }
    }

    /// Waits until no log is left, or the hive is over.
    pub(crate) async fn none(&self, is_over: impl Fn() -> bool) {
        loop {
            let fewer = self.fewer.notified();
            if self.count.load(Ordering::Acquire) == 0 || is_over() {
                return;
            }
            fewer.await
        }
    }
}

impl PendingRuns {
    /// Returns an empty set of runs for a bee that writes its records to `link`.
    pub(crate) fn new(link: &Arc<Link>) -> Box<Self> {
        Box::new(PendingRuns {
            version: link.version(),
            link: link.clone(),
            base: EncodedCells::default(),
            seen: DedupTable::default(),
            retirements: link.lanes.retirements(),
            entries: VecDeque::new(),
            again: VecDeque::new(),
            next_seq: Seq::ZERO,
            cells_logged: 0,
            is_logged: false,
            heir_of: BTreeSet::new(),
            epoch: Epoch::default(),
            registry_epoch: Epoch::default(),
            left: None,
        })
    }

    /// Returns the client of the bee's log.
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Returns the number of logs that the bee has left and that have not dropped it yet.
    pub(crate) fn not_dropped(&self) -> usize {
        self.left.as_ref().map_or(0, |left| left.count.load(Ordering::Acquire))
    }

    /// Checks whether any message sent by the bee (on its lane `own`) or by a bee that merged into it is
    /// unacknowledged.
    pub(crate) fn has_unacknowledged(&self, own: LaneId) -> bool {
        let lanes = &self.link.lanes.bees;
        lanes.is_open(own) || self.heir_of.iter().any(|lane| lanes.is_open(*lane))
    }

    /// Changes the log to which the bee's records go. No record may be in flight. The new log contains the
    /// bee with its first `cells_logged` cells.
    pub(crate) fn moved_to(&mut self, link: &Arc<Link>, cells_logged: usize) {
        debug_assert!(self.is_settled(), "the log changes only while nothing is in flight");
        (self.link, self.version, self.cells_logged) = (link.clone(), link.version(), cells_logged)
    }

    /// Checks whether all runs are committed and none is waiting to be executed again.
    pub(crate) fn is_settled(&self) -> bool {
        self.entries.is_empty() && self.again.is_empty()
    }

    /// Checks whether the log has decided any entries since the last call to [`PendingRuns::reconcile`].
    pub(crate) fn is_behind(&self) -> bool {
        self.version != self.link.version()
    }

    /// Returns the number of the newest entry in flight.
    pub(crate) fn newest(&self) -> Option<EntryNumber> {
        self.entries.iter().rev().find_map(Executed::number)
    }

    /// Releases the effects of committed runs in order. If an entry is dead, rolls back its run and all
    /// later ones, which were executed on top of it. Returns whether any run was rolled back.
    pub(crate) fn reconcile(&mut self, bee: &Bee, state: &mut dyn AnyState, cx: &mut RouteContext) -> bool {
        if !self.is_behind() || self.link.is_deposed() {
            return false;
        }
        // read the version before the fates. If the log decides an entry in between, the version changes
        // again, and the next call notices it
        self.version = self.link.version();

        while let Some(oldest) = self.entries.front() {
            let fate = match &oldest.entry {
                Some((number, _)) => self.link.fate(*number),
                // all entries before it are committed
                None if self.link.is_confirmed(oldest.confirmation) => Fate::Committed,
                None => Fate::Open,
            };
            match fate {
                Fate::Open => break,
                Fate::Dead => {
                    self.take_back(&bee.app, state);
                    return true;
                }
                Fate::Committed => {
                    let Some(done) = self.entries.pop_front() else { return false };
                    self.release(done, bee, state, cx)
                }
            }
        }
        false
    }

    /// Applies a committed run to the committed state and releases its effects. All earlier runs must already
    /// have been released.
    pub(crate) fn release(
        &mut self,
        mut done: Executed,
        bee: &Bee,
        state: &mut dyn AnyState,
        cx: &mut RouteContext,
    ) {
        let number = done.number();
        if let Some((_, work)) = done.entry.take() {
            // record the sent messages before releasing the effects: the receiving bees look up the lane's floor
            let tracked = work.emits.iter().filter(|emit| self.link.tracks(emit.id.app));
            let lanes = &self.link.lanes.bees;
            if lanes.sent_or_postponed(self.link.office(), tracked, done.has_postponed) {
                lanes.hold(LaneId::of_bee(AppId(bee.app.index), bee.id), done.delivery.cause.as_ref())
            }
            if let Some(views) = bee.app.own_views() {
                state.publish_committed(views, &work.redo, cx.turn.moment())
            }
            work.redo.iter().for_each(|op| self.base.apply(op))
        }

        self.cells_logged = self.cells_logged.max(done.cells_end);
        if let (Some(probe), Some(number)) = (cx.turn.hive.probe(), number) {
            probe.entry_committed((self.link.position(), number))
        }

        match done.unsaid {
            Unsaid::Nothing => {}
            Unsaid::Open(Some(sweep)) if done.inputs().is_empty() && !self.link.bees_move() => {
                self.link.visited(sweep, &done.delivery.cells)
            }
            Unsaid::Open(_) => self.link.note_consumed(consumed(bee, &mut done)),
            // from here on, this run is no longer rolled back, but the entry that records it may still be
            // refused
            Unsaid::InNextEntry(_) => {
                let next = self.entries.iter_mut().find(|executed| executed.entry.is_some());
                debug_assert!(next.is_some(), "the entry that says what was consumed is in flight");
                match next.map(|next| &mut next.says) {
                    Some(Some(says)) => says.absorb(consumed(bee, &mut done)),
                    Some(says) => *says = Some(consumed(bee, &mut done)),
                    None => {}
                }
            }
        }

        if self.entries.is_empty() && self.entries.capacity() > 0 {
            // an idle bee keeps no queue, which would be its largest part
            let runs = std::mem::take(&mut self.entries);
            cx.turn.local::<Local>(bee.app.index).keep_runs(runs, &bee.app)
        }

        (cx.turn.cause, cx.turn.office) = (done.delivery.cause.clone(), self.link.office());
        flush(done.steps, cx);
        (cx.turn.cause, cx.turn.office) = (None, Office::NONE);
        acknowledge(&self.link, &done.delivery, bee.app.index, cx.turn.hive);
        let Delivery { batch, cells, .. } = done.delivery;
        batch.committed(cells.len());
        panics::harmless(|| drop(batch));
    }

    /// For a mutant: releases the effects of all uncommitted runs.
    pub(super) fn release_all(&mut self, bee: &Bee, body: &mut Body, hive: &Arc<HiveInner>) {
        Turn::with(hive, Place::Runners, |turn| {
            while let Some(done) = self.entries.pop_front() {
                let cx = &mut RouteContext::new(&mut body.queue, turn);
                self.release(done, bee, &mut body.app, cx)
            }
        })
    }

    /// Discards all uncommitted runs, restores the committed state, and queues the runs' messages to be
    /// executed again.
    fn take_back(&mut self, app: &Arc<AppRuntime>, state: &mut dyn AnyState) {
        self.link.taken_back(self.entries.iter().filter_map(Executed::number));
        for executed in self.entries.drain(..).rev() {
            if !self.link.lanes.breaks(Mutant::RefusedRemembered) {
                forget(&mut self.seen, executed.inputs())
            }
            if let Some(says) = executed.says {
                self.link.note_consumed(says)
            }
            self.again.push_front(executed.delivery)
        }

        if !self.link.lanes.breaks(Mutant::RefusedKept) {
            restore(app, state, &self.base)
        }
    }

    /// Returns the messages and visits that runs without an entry have handled and that no entry records yet.
    pub(crate) fn unsaid(&self) -> (InputRuns, Vec<Visited>) {
        let (mut inputs, mut visits) = (InputRuns::new(), Vec::new());
        if self.link.lanes.breaks(Mutant::OneMark) {
            return (inputs, visits);
        }
        // each entry records everything that was open before it, so only runs after the newest entry can be
        // open
        for executed in self.entries.iter().rev().take_while(|executed| executed.entry.is_none()) {
            if let Unsaid::Open(_) = executed.unsaid {
                inputs.extend_from_slice(executed.inputs());
                visits.extend(executed.visits())
            }
        }
        (inputs, visits)
    }

    /// Adds a run whose effects must wait. If it has an entry, the entry also records the messages and visits that were
    /// [open](PendingRuns::unsaid) before.
    pub(crate) fn push(&mut self, executed: Executed, app: &AppRuntime, local: &mut Local) {
        if self.entries.capacity() == 0 {
            self.entries = local.take_runs(app)
        }
        if executed.entry.is_some() {
            for earlier in self.entries.iter_mut().rev().take_while(|executed| executed.entry.is_none()) {
                if let Unsaid::Open(sweep) = earlier.unsaid {
                    earlier.unsaid = Unsaid::InNextEntry(sweep)
                }
            }
        }
        self.entries.push_back(executed)
    }

    /// Returns the newest confirmation for which a run waits.
    pub(crate) fn newest_confirmation(&self) -> u64 {
        self.entries.back().map_or(0, |executed| executed.confirmation)
    }

    /// Undoes a run that cannot be recorded, and that has made these changes: the state is then the committed state plus
    /// all executed runs. Empties the volatile dictionaries, because nothing contains what the run has changed there.
    ///
    /// The time that this takes depends on the number of these changes and of those that are not committed, not on the
    /// number of the bee's rows: each message of a batch may fail in this way.
    pub(crate) fn undo(&self, changes: &Redo, app: &AppRuntime, state: &mut dyn AnyState) {
        // a panic between two transactions leaves nothing to roll back, but costs nothing to assume
        panics::to_the_end(|| state.rollback());
        panics::to_the_end(|| state.clear_volatile());

        // the value at each changed place, before the run; `None` if no executed run has changed it
        let mut before: BTreeMap<_, Option<Op>> = changes.iter().map(|op| (op.place(), None)).collect();
        let works = self.entries.iter().filter_map(Executed::work);
        for op in works.flat_map(|work| &work.redo) {
            if let Some(last) = before.get_mut(&op.place()) {
                *last = Some(op)
            }
        }

        for ((dict, key, row), executed) in before {
            let at = Op { dict, key, row, value: None };
            let op = executed.unwrap_or_else(|| Op { value: self.base.value(at), ..at });
            // this process encoded the value, so decoding fails only if the type's serialization has a bug. The drop of the
            // changed value may panic
            if let Some(Err(error)) = panics::harmless(|| state.set(app.seed, &op)) {
                tracing::error!(app = app.name, %error, "cannot decode a row while undoing a run");
            }
        }
    }

    /// Marks the messages in `range` as executed. Returns the newly marked messages twice: as positions in the batch, and
    /// as the inputs for the bee's record.
    pub(crate) fn take_note(
        &mut self,
        batch: &dyn Messages,
        app: u16,
        range: Range<u32>,
    ) -> (NewMessages, InputRuns) {
        if batch.source().numbers.lane == LaneId::NONE {
            return (range.collect(), InputRuns::new());
        }

        let mut new = NewMessages::new();
        let mut inputs = InputRuns::new();
        // messages from outside can arrive twice, and so can messages from other logs. If bees move between
        // logs, all messages between bees can. Every other message is in the outbox of this log, which
        // contains it once
        let lane = batch.source().numbers.lane;
        let is_bees = batch.admitted().is_none() && self.link.acknowledges(lane);
        if batch.admitted().is_some() || is_bees {
            // before the floor is known: a lane that retires after this is still in `seen`, and one that has retired before
            // has no floor
            self.prune()
        }
        let floor = match batch.admitted() {
            Some(admitted) => Some(admitted.lane().floor()),
            None if self.is_local_and_unmarked(lane) => None,
            None if is_bees => match self.floor_of_bee(lane, AppId(app)) {
                None if self.link.is_clustered() && !self.link.lanes.breaks(Mutant::RetiredUnheard) => {
                    // everything on the lane was handled, so these are copies
                    return (NewMessages::new(), InputRuns::new());
                }
                floor => Some(floor.unwrap_or_default()),
            },
            None => None,
        };
        if let Some(floor) = floor {
            self.seen.raise(lane, floor)
        }

        for index in range {
            let message_id = batch.source().message_id(index, app);
            if floor.is_some() && self.seen.contains(message_id.lane, message_id.seq, message_id.part) {
                continue;
            }
            new.push(index);
            match inputs.last_mut() {
                Some(last)
                    if message_id.part.is_whole() && last.seq.plus(last.count as u64) == message_id.seq =>
                {
                    last.count += 1
                }
                _ => inputs.push(Input {
                    lane: message_id.lane,
                    floor,
                    seq: message_id.seq,
                    count: 1,
                    part: message_id.part,
                }),
            }
        }

        if floor.is_some() {
            // the numbers of a batch differ, so none of them could have been found above
            inputs.iter().for_each(|input| remember(&mut self.seen, input))
        }
        (new, inputs)
    }

    /// Returns the floor that the sender of a lane states to the bees of an app. Returns `None` if the lane is unknown.
    fn floor_of_bee(&self, lane: LaneId, app: AppId) -> Option<Seq> {
        let floor = self.link.lanes.floor(lane, app);
        floor.map(|floor| if self.link.lanes.breaks(Mutant::FloorUnstated) { Seq::ZERO } else { floor })
    }

    fn is_local_and_unmarked(&self, lane: LaneId) -> bool {
        self.link.lanes.breaks(Mutant::LocalUnmarked)
            && self.link.lanes.bees.is_in(lane, self.link.position())
    }

    /// Marks visits of a sweep as executed, as [`PendingRuns::take_note`] does for messages. It is called
    /// only if bees move between logs, because a visit may then arrive twice. Returns the newly marked visits twice: as
    /// cells, and as the inputs for the bee's record.
    pub(crate) fn take_note_of_visits(&mut self, sweep: MessageId, cells: &[CellId]) -> (CellSet, InputRuns) {
        let MessageId { lane, seq, app, .. } = sweep;
        let floor = self.link.lanes.floor(lane, app).unwrap_or_default();
        self.prune();
        self.seen.raise(lane, floor);

        let (mut new, mut inputs) = (CellSet::new(), InputRuns::new());
        for cell in cells {
            let part = Part::of_visit(*cell);
            if self.seen.contains(lane, seq, part) {
                continue;
            }
            self.seen.insert(lane, seq, part);
            new.push(*cell);
            inputs.push(Input { lane, floor: Some(floor), seq, count: 1, part })
        }
        (new, inputs)
    }

    /// Undoes [`PendingRuns::take_note`] for messages that were not executed after all.
    pub(crate) fn forget(&mut self, inputs: &[Input]) {
        forget(&mut self.seen, inputs)
    }

    /// Removes retired lanes from `seen`, if any lane has retired since the last call.
    pub(crate) fn prune(&mut self) {
        let retirements = self.link.lanes.retirements();
        if std::mem::replace(&mut self.retirements, retirements) != retirements {
            self.forget_unknown()
        }
    }

    /// Removes retired lanes from `seen`.
    pub(crate) fn forget_unknown(&mut self) {
        self.link.lanes.prune(&mut self.seen)
    }
}

/// Acknowledges a delivery's messages to the log whose outbox contains them, if they may arrive twice. The
/// log `link` must have committed the record that consumed them.
pub(crate) fn acknowledge(link: &Link, delivery: &Delivery, app: u16, hive: &HiveInner) {
    if delivery.count == 0 {
        if let Some(logs) = &hive.logs
            && let Some(sweep) = delivery.batch.sweep().filter(|_| link.bees_move())
        {
            logs.visited(AppId(app), sweep, &delivery.cells)
        }
        return;
    }

    let numbers = delivery.batch.numbers();
    if !link.acknowledges(numbers.lane) {
        return;
    }
    let acked = |index, count| {
        let MessageId { lane, seq, part, app } = numbers.id(index, AppId(app));
        let acked = Acked { app, lane, seq, count, part };
        match delivery.batch.arrival() {
            Some(arrival) if !link.lanes.breaks(Mutant::AckByLane) => arrival.acknowledge(acked),
            _ => hive.acknowledge(acked),
        }
    };
    let Delivery { first, count, .. } = *delivery;
    match numbers.id(first, AppId(app)).part.is_whole() {
        true => acked(first, count),
        false => (first..first + count).for_each(|index| acked(index, 1)),
    }
}

/// Returns the messages and visits handled by a run without an entry.
fn consumed(bee: &Bee, done: &mut Executed) -> Consumed {
    let visits = done.visits().into_iter().collect();
    let inputs = match &mut done.inputs {
        Inputs::Own(inputs) => std::mem::take(inputs),
        Inputs::OfEntry(_) => InputRuns::new(),
    };
    Consumed { app: AppId(bee.app.index), bee: bee.id, inputs, visits }
}

/// Marks the messages of an input as executed.
fn remember(seen: &mut DedupTable, &Input { lane, seq, count, part, .. }: &Input) {
    match part.is_whole() {
        true => seen.insert_run(lane, seq, seq.plus(u64::from(count))),
        false => seen.insert(lane, seq, part),
    }
}

fn forget(seen: &mut DedupTable, inputs: &[Input]) {
    for input in inputs {
        input.messages().for_each(|(seq, part)| seen.remove(input.lane, seq, part))
    }
}

fn restore(app: &Arc<AppRuntime>, state: &mut dyn AnyState, base: &EncodedCells) {
    state.clear();
    for image in base.images() {
        // this process encoded the image, so decoding fails only if the type's serialization has a bug
        if let Err(error) = state.import(app.seed, &image) {
            tracing::error!(app = app.name, %error, "cannot decode a cell while restoring the committed state");
        }
    }
}
