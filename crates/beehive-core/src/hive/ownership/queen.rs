//! An app's queen: finds or creates the owners of cells, and retires idle ones.
//!
//! Each app has at most one claim proposal in flight. Misses arriving meanwhile are batched into the next proposal,
//! up to a limit. `Fused` and `Release` proposals do not wait for it.

use crate::cell::{BeeId, CellId, CellSet};
use crate::hash::HashMap;
use crate::hive::bee::app::{AppRuntime, OwnerRequest, Queen, Standing};
use crate::hive::bee::lifecycle::{Bee, Retirement};
use crate::hive::consensus::journal::{AppId, Epoch, LaneId, Record};
use crate::hive::consensus::registry::{ColonyId, Decision, Proposal, Unavailable};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::blocked::Owners;
use crate::hive::dispatch::turn::Link;
use crate::limits;
use crate::mutant::Mutant;
use crate::seams::BoxFuture;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::oneshot;

/// Delay before the queen retries an unavailable registry.
pub(in crate::hive) const RETRY: Duration = Duration::from_millis(50);

/// The owner of a set of cells, if a single bee owns all of them.
pub(crate) enum Owner {
    /// This bee owns all the cells.
    Bee(Arc<Bee>),
    /// Several bees must be merged first, or the registry has not decided yet.
    NotYet,
}

type Proposed = BoxFuture<Result<Vec<Decision>, Unavailable>>;

impl Owners for AppRuntime {
    fn ask(self: Arc<Self>, sets: Vec<CellSet>, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        let decided = self.decide(sets, hive);
        Box::pin(async move {
            // senders whose cells still have no single owner call `unite`, or ask again
            let _ = decided.await;
        })
    }

    fn unite(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        let (app, hive) = (self, hive.clone());
        Box::pin(async move {
            if app.is_clustered() {
                return app.united(&cells, &hive).await;
            }
            let mut pause = Duration::from_micros(100);
            let mut merges_in_vain = 0;
            while !hive.is_over() {
                let decided = app.decide(vec![cells.clone()], &hive).await;
                match decided.map(|mut all| all.pop()) {
                    Ok(Some(Standing::Owned)) => return,
                    Ok(Some(Standing::Merging { root, from })) => {
                        let mut has_merged = false;
                        for from in from {
                            has_merged |= app.fuse(from, root, &hive).await
                        }
                        merges_in_vain = if has_merged { 0 } else { merges_in_vain + 1 };
                        if merges_in_vain > 1 {
                            // a bee has ended, and the registry is told of it when its log has committed that
                            hive.platform.sleep(pause).await;
                            pause = (pause * 2).min(RETRY)
                        }
                    }
                    Ok(_) => {
                        // an owner that has ended is replaced when its log has committed the end, which may take a
                        // long time
                        hive.platform.sleep(pause).await;
                        pause = (pause * 2).min(RETRY)
                    }
                    Err(Unavailable) => hive.platform.sleep(RETRY).await,
                }
            }
        })
    }
}

impl AppRuntime {
    /// Returns the bee that owns all of `cells` according to the routing table.
    #[inline]
    pub(crate) fn owner(&self, cells: &[CellId]) -> Option<Arc<Bee>> {
        let (first, rest) = cells.split_first()?;
        let bee = self.routes.find(*first)?;
        rest.iter().all(|cell| self.routes.leads_to(*cell, &bee)).then_some(bee)
    }

    /// Waits until one bee owns all of `cells`, in this hive or in another one. The claim aims the owners at one of them,
    /// and the reconcilers of their hives do the rest.
    async fn united(self: &Arc<Self>, cells: &CellSet, hive: &Arc<HiveInner>) {
        let is_united = || self.elsewhere(cells).is_some() || self.owner(cells).is_some();
        while !hive.is_over() && !is_united() {
            let _ = self.decide(vec![cells.clone()], hive).await;
            let mut again = hive.platform.sleep(RETRY);
            loop {
                let next = self.registry.index() + 1;
                if is_united() {
                    return;
                }
                tokio::select! {
                    biased;
                    () = hive.over() => return,
                    () = &mut again => break,
                    () = self.registry.wait(next) => {}
                }
            }
        }
    }

    /// Returns the owner of each set of cells, after claiming all sets in one proposal. If another proposal is in
    /// flight, proposes nothing: the messages wait in their sender's queue, which asks again.
    pub(crate) fn claim(self: &Arc<Self>, sets: Vec<CellSet>, hive: &Arc<HiveInner>) -> Vec<Owner> {
        let mut queen = self.queen.lock();
        let not_yet = |sets: &[CellSet]| sets.iter().map(|_| Owner::NotYet).collect();
        if queen.asking {
            return not_yet(&sets);
        }

        let mut proposed = self.propose(&sets);
        match poll_once(&mut proposed) {
            Poll::Ready(Ok(decisions)) => {
                let queen = &mut *queen;
                sets.iter().zip(decisions).map(|(cells, one)| self.carry_out(queen, cells, one).0).collect()
            }
            Poll::Ready(Err(Unavailable)) => not_yet(&sets),
            Poll::Pending => {
                queen.asking = true;
                let waiting = not_yet(&sets);
                hive.spawn(Box::pin(self.clone().answer(Some((sets, proposed)))));
                waiting
            }
        }
    }

    /// Asks the registry about sets of cells, in one proposal together with other callers' sets. Completes when the
    /// decision has been executed, or when the registry is unavailable.
    pub(crate) fn decide(
        self: &Arc<Self>,
        sets: Vec<CellSet>,
        hive: &Arc<HiveInner>,
    ) -> BoxFuture<Result<Vec<Standing>, Unavailable>> {
        let (sender, receiver) = oneshot::channel();
        let mut queen = self.queen.lock();
        queen.asked.push_back(OwnerRequest { sets, answer: sender });
        if !std::mem::replace(&mut queen.asking, true) {
            hive.spawn(Box::pin(self.clone().answer(None)));
        }
        // the sending half is dropped without an answer only when the hive is dropped
        Box::pin(async move { receiver.await.unwrap_or(Err(Unavailable)) })
    }

    fn propose(&self, sets: &[CellSet]) -> Proposed {
        let claim = |cells: &CellSet| Proposal::Claim {
            app: AppId(self.index),
            cells: cells.clone(),
            colony: self.colony_for(cells),
        };
        self.registry.propose(sets.iter().map(claim).collect())
    }

    /// Makes one proposal after another until no request is left. Each proposal contains the requests that arrived
    /// during the previous one. A decision is carried out even if its caller is no longer waiting, because the registry
    /// may have created a bee.
    async fn answer(self: Arc<Self>, first: Option<(Vec<CellSet>, Proposed)>) {
        let mut asked: Vec<OwnerRequest> = Vec::new();
        let mut in_flight = first;
        loop {
            let mut merging = HashMap::default();
            let mut failed = None;
            if let Some((sets, proposed)) = in_flight.take() {
                match proposed.await {
                    Ok(decisions) => {
                        if self.is_clustered() {
                            // The decisions may follow from what the next leader of one of this hive's logs has done. Only
                            // the replica tells that there is one: see `carry_out`
                            let index = decisions.iter().map(Decision::index).max();
                            self.registry.wait(index.unwrap_or_default()).await
                        }
                        let mut queen = self.queen.lock();
                        for (cells, decision) in sets.into_iter().zip(decisions) {
                            if let (_, Some(merge)) = self.carry_out(&mut queen, &cells, decision) {
                                merging.insert(cells, merge);
                            }
                        }
                    }
                    Err(unavailable) => failed = Some(unavailable),
                }
            }

            for OwnerRequest { sets, answer } in asked.drain(..) {
                let standing = |cells: &CellSet| match merging.get(cells) {
                    _ if self.owner(cells).is_some() => Standing::Owned,
                    Some((root, from)) => Standing::Merging { root: *root, from: from.clone() },
                    None => Standing::Undecided,
                };
                // sending fails if the caller is no longer waiting, but the decision has been carried out anyway
                let _ = answer.send(failed.map_or_else(|| Ok(sets.iter().map(standing).collect()), Err));
            }
            {
                let mut queen = self.queen.lock();
                let mut count = 0;
                while let Some(next) = queen.asked.front()
                    && (count == 0 || count + next.sets.len() <= limits::CLAIMS_PER_PROPOSAL_MAX)
                {
                    count += next.sets.len();
                    asked.extend(queen.asked.pop_front())
                }
                queen.asking = !asked.is_empty();
            }

            if asked.is_empty() {
                return;
            }

            let unknown = asked.iter().flat_map(|one| &one.sets).filter(|cells| self.owner(cells).is_none());
            let unknown: Vec<CellSet> = unknown.cloned().collect();
            if !unknown.is_empty() {
                let proposed = self.propose(&unknown);
                in_flight = Some((unknown, proposed))
            }
        }
    }

    /// Executes the registry's decision about a claim. Also returns the bees that must be merged, if any.
    fn carry_out(
        self: &Arc<Self>,
        queen: &mut Queen,
        cells: &[CellId],
        decision: Decision,
    ) -> (Owner, Option<(BeeId, Vec<BeeId>)>) {
        let Decision::Owner { root, colony, created, merging, index, .. } = decision else {
            return (Owner::NotYet, None);
        };
        if self.is_clustered() {
            let mut has_lost = false;
            self.registry.read(&mut |view| has_lost = self.leaves_lost(view));
            if has_lost {
                // the caller asks again
                return (Owner::NotYet, None);
            }
        }
        if queen.is_cleared {
            // the hive has stopped while the registry decided, and nobody would drop the bee
            return (Owner::NotYet, None);
        }
        if created && self.is_still_new(queen, root, index) {
            let log = self.log_of(colony);
            if log.is_none() && !self.links.is_empty() {
                // the hive has lost the log meanwhile
                return (Owner::NotYet, None);
            }
            let bee = Bee::new(self, root, cells, self.body(log.as_ref()));
            queen.bees.insert(bee.clone());
            self.count_created();
            for cell in cells {
                self.routes.set(*cell, &bee)
            }
            return (Owner::Bee(bee), None);
        }

        for bee in merging.iter().chain([&root]) {
            if queen.bees.get(*bee).is_none() {
                self.create_missing(queen, *bee)
            }
        }
        let Some(bee) = queen.bees.get(root) else { return (Owner::NotYet, None) };
        if !merging.is_empty() {
            return (Owner::NotYet, Some((root, merging)));
        }
        for cell in cells {
            if !self.routes.leads_to(*cell, bee) {
                // the cell had no owner, so the registry gave it to the owner of the other cells
                if !bee.own(*cell) {
                    return (Owner::NotYet, None);
                }
                self.routes.set(*cell, bee)
            }
        }
        (Owner::Bee(bee.clone()), None)
    }

    /// Checks whether a bee that the registry created at `index` is still to be created in this hive. If the hive is in a
    /// cluster, the reconciler may have been faster, and the bee may have moved or ended since.
    fn is_still_new(&self, queen: &Queen, bee: BeeId, index: u64) -> bool {
        if !self.is_clustered() {
            return true;
        }
        let mut is_here = true;
        self.registry.read(&mut |state| {
            let entry = state.bee(bee).filter(|entry| entry.epoch == Epoch(0));
            is_here = state.index() < index || entry.is_some()
        });
        is_here && queen.bees.get(bee).is_none() && !queen.ended.contains(&bee)
    }

    /// Creates a bee that the registry has assigned to one of this hive's colonies, unless the hive has it already.
    pub(crate) fn create(self: &Arc<Self>, bee: BeeId) {
        let mut queen = self.queen.lock();
        if queen.bees.get(bee).is_none() {
            self.create_missing(&mut queen, bee)
        }
    }

    /// Removes a bee that has moved to another log.
    pub(crate) fn remove_moved(&self, bee: &Arc<Bee>) {
        let mut queen = self.queen.lock();
        // another log of this hive may have adopted it
        if queen.bees.get(bee.id).is_some_and(|known| Arc::ptr_eq(known, bee)) {
            queen.bees.remove(bee.id);
            for cell in bee.has_moved() {
                self.routes.remove(cell, bee)
            }
        }
    }

    /// Creates a bee that the registry has assigned to one of this hive's colonies without this hive noticing: the answer of
    /// the registry was lost, or the process that claimed the bee has ended before the registry decided.
    fn create_missing(self: &Arc<Self>, queen: &mut Queen, id: BeeId) {
        let is_broken = self.link.as_ref().is_some_and(|link| link.lanes.breaks(Mutant::MissingNotCreated));
        // when the hive stops, it drops its bees before their routes
        if queen.is_cleared || queen.ended.contains(&id) || is_broken {
            return;
        }
        let mut new = None;
        self.registry.read(&mut |state| {
            // a bee that has ended is in `ended` until the replica knows its end
            if self.leaves_lost(state) {
                return;
            }
            let place = state.bee(id).filter(|entry| entry.epoch == Epoch(0) && entry.app.0 == self.index);
            new = place.map(|entry| (entry.colony, state.cells_of(id).collect::<Vec<CellId>>()))
        });
        let Some((colony, cells)) = new else { return };
        let log = self.log_of(colony);
        if log.is_none() && !self.links.is_empty() {
            return;
        }
        let bee = Bee::new(self, id, &cells, self.body(log.as_ref()));
        queen.bees.insert(bee.clone());
        self.count_created();
        cells.iter().for_each(|cell| self.routes.set(*cell, &bee))
    }

    pub(crate) fn bee(&self, id: BeeId) -> Option<Arc<Bee>> {
        self.queen.lock().bees.get(id).cloned()
    }

    /// Returns the index of the replica of the registry for a record about which the registry must be told; zero if the
    /// hive is alone. If the hive is in a cluster, the next process must know what the registry was not told.
    pub(super) fn view(&self) -> u64 {
        if self.is_clustered() { self.registry.index() } else { 0 }
    }

    /// Tells the registry that a bee has ended, and retries until this succeeds. Until then, the registry names a bee
    /// that no longer exists, and senders to its cells keep asking.
    fn release(self: &Arc<Self>, queen: &mut Queen, bee: BeeId, hive: &Arc<HiveInner>) {
        self.tell_end(queen, bee, vec![Proposal::Release { bee }], hive)
    }

    /// Tells the registry how a bee has ended, and retries until this succeeds.
    fn tell_end(self: &Arc<Self>, queen: &mut Queen, bee: BeeId, said: Vec<Proposal>, hive: &Arc<HiveInner>) {
        let polled = match self.is_clustered() {
            // the replica is always behind
            true => Poll::Pending,
            false => poll_once(&mut self.registry.propose(said.clone())),
        };
        let index = match polled {
            Poll::Ready(Ok(decisions)) => decisions.last().map(Decision::index),
            Poll::Ready(Err(Unavailable)) | Poll::Pending => None,
        };
        if index.is_some_and(|index| self.registry.index() >= index) {
            return;
        }

        queen.ended.insert(bee);
        let (app, waiting) = (self.clone(), hive.clone());
        hive.spawn(Box::pin(async move {
            let index = match index {
                Some(index) => Some(index),
                None => app.state(&said, &waiting).await,
            };
            if let Some(index) = index {
                app.knows_end(bee, index, &waiting)
            }
        }))
    }

    /// Tells the registry what has become of the bees of this app that it knows. `restored` are the app's bees in the hive's
    /// logs, with the colonies of the logs and their cells. Without this, the hive would take the other bees for those that
    /// it has yet to create.
    ///
    /// A restored bee of which the registry knows another colony has moved from that colony's log to its own: its log had
    /// committed the move, and the process ended before it told the registry.
    ///
    /// A bee whose cells one of the restored bees has was merged into that one: the log had committed the merge, and the
    /// process ended before it told the registry. If the registry were told that the bee has ended, it would take the cells
    /// for free, and would give them to a second owner. All other bees have ended: they were in the memory of an earlier
    /// process, or that process has ended before it told the registry of their ends.
    ///
    /// For a hive without a cluster that starts on a registry that an earlier process has used.
    pub(in crate::hive) fn end_unknown<'c>(
        self: &Arc<Self>,
        restored: impl Iterator<Item = (BeeId, ColonyId, &'c [CellId])>,
        hive: &Arc<HiveInner>,
    ) {
        let (mut here, mut owners) = (BTreeMap::new(), HashMap::default());
        for (bee, colony, cells) in restored {
            here.insert(bee, colony);
            owners.extend(cells.iter().map(|cell| (*cell, bee)))
        }
        let (mut unknown, mut moved) = (Vec::new(), Vec::new());
        self.registry.read(&mut |state| {
            let all = self.colonies().iter().flat_map(|colony| state.bees_at(*colony));
            let mine = all.filter(|bee| state.bee(*bee).is_some_and(|entry| entry.app.0 == self.index));
            let heir = |bee| state.cells_of(bee).find_map(|cell| owners.get(&cell).copied());
            unknown = mine.filter(|bee| !here.contains_key(bee)).map(|bee| (bee, heir(bee))).collect();
            let entries = here.iter().filter_map(|(bee, colony)| Some((*bee, *colony, state.bee(*bee)?)));
            let elsewhere = entries.filter(|(_, colony, entry)| entry.colony != *colony);
            moved =
                elsewhere.map(|(bee, to, entry)| Proposal::Commit { bee, epoch: entry.epoch, to }).collect()
        });
        if !moved.is_empty() {
            self.tell(moved, hive)
        }

        let mut queen = self.queen.lock();
        for (bee, heir) in unknown {
            let Some(into) = heir else {
                self.release(&mut queen, bee, hive);
                continue;
            };
            let mut said = vec![Proposal::Fused { from: bee, into }];
            let lane = LaneId::of_bee(AppId(self.index), bee);
            if self.link.as_ref().is_none_or(|link| !link.lanes.bees.knows(lane)) {
                // the lane table does not contain this lane, so it will never report that the lane has ended
                said.push(Proposal::Retire { lane })
            }
            self.tell_end(&mut queen, bee, said, hive)
        }
    }

    /// Tells the registry that nothing on these lanes is unhandled. Ignores the lanes of other apps.
    pub(crate) fn lanes_ended(self: &Arc<Self>, lanes: &[LaneId], hive: &Arc<HiveInner>) {
        let mine = lanes.iter().filter(|lane| lane.bee().is_some_and(|(app, _)| app.0 == self.index));
        let ended: Vec<Proposal> = mine.map(|lane| Proposal::Retire { lane: *lane }).collect();
        if !ended.is_empty() {
            self.tell(ended, hive)
        }
    }

    /// Sends statements to the registry, and retries until this succeeds.
    fn tell(self: &Arc<Self>, statements: Vec<Proposal>, hive: &Arc<HiveInner>) {
        let mut proposed = self.registry.propose(statements.clone());
        if let Poll::Ready(Ok(_)) = poll_once(&mut proposed) {
            return;
        }
        let (app, waiting) = (self.clone(), hive.clone());
        hive.spawn(Box::pin(async move {
            app.state(&statements, &waiting).await;
        }))
    }

    /// Sends statements to the registry, and retries until this succeeds or the hive is over. Returns the registry's
    /// index; `None` if the registry may not have heard the statements.
    pub(super) async fn state(&self, statements: &[Proposal], hive: &HiveInner) -> Option<u64> {
        loop {
            match self.registry.propose(statements.to_vec()).await {
                Ok(decisions) => return Some(decisions.last().map_or(0, Decision::index)),
                Err(Unavailable) if hive.is_over() => return None,
                Err(Unavailable) => hive.platform.sleep(RETRY).await,
            }
        }
    }

    /// Forgets that a bee has ended when the replica of the registry knows it.
    pub(super) fn knows_end(self: &Arc<Self>, bee: BeeId, index: u64, hive: &Arc<HiveInner>) {
        if self.registry.index() >= index {
            self.queen.lock().ended.remove(&bee);
            return;
        }
        let app = self.clone();
        hive.spawn(Box::pin(async move {
            app.registry.wait(index).await;
            app.queen.lock().ended.remove(&bee);
        }))
    }

    /// Checks whether the registry may give the cells of a bee that has ended to another bee before the log has
    /// committed the end. In one log, the records of the next owner come after the record of the end, so they take
    /// effect only if that record does. In another log, they are committed independently. If the hive crashed before
    /// the first log had committed the end, each of the two logs would have an owner of the cells.
    fn frees_cells_at_once(&self) -> bool {
        let is_mutant = |link: &Link| link.lanes.breaks(Mutant::ReleaseRegistryFirst);
        (self.links.len() <= 1 && !self.is_clustered()) || self.link.as_deref().is_some_and(is_mutant)
    }

    /// Tells the registry that a bee has ended when its log has committed the end, unless the registry knows it already.
    fn said_ended(self: &Arc<Self>, bee: BeeId, committed: oneshot::Receiver<()>, hive: &Arc<HiveInner>) {
        if self.frees_cells_at_once() {
            return;
        }
        let (app, waiting) = (self.clone(), hive.clone());
        hive.spawn(Box::pin(async move {
            // an error says that the hive is gone
            if committed.await.is_ok()
                && let Some(index) = app.state(&[Proposal::Release { bee }], &waiting).await
            {
                app.knows_end(bee, index, &waiting)
            }
        }))
    }

    /// Retires the bees that are idle and own only empty cells. Returns their number.
    pub(crate) fn retire_idle(self: &Arc<Self>, hive: &Arc<HiveInner>) -> usize {
        let (mut retired, mut later, mut with_timers) = (0, Vec::new(), Vec::new());
        for bee in self.take_idle() {
            let mut queen = self.queen.lock();
            let mut logged = None;
            let ended = bee.retire(|cells, floors| {
                match floors.is_none() || self.frees_cells_at_once() {
                    true => self.release(&mut queen, bee.id, hive),
                    // `said_ended` will tell the registry
                    false => drop(queen.ended.insert(bee.id)),
                }
                logged = floors;
                for cell in cells {
                    self.routes.remove(*cell, &bee)
                }
            });
            match ended {
                Retirement::Ended => {
                    if let Some((link, floors)) = logged {
                        // log the consumed messages before the log forgets the bee
                        link.log_consumed();
                        // the record must enter the log before another bee can get these cells, because that bee does
                        // not know which messages this one has handled
                        let (app, view) = (AppId(self.index), self.view());
                        let ended = Record::Release { app, bee: bee.id, floors, view };
                        match link.lanes.breaks(Mutant::ReleaseRegistryFirst) {
                            false => self.said_ended(bee.id, link.say(ended), hive),
                            true => say_late(link.clone(), ended, hive),
                        }
                        link.lanes.bees.end(bee.lane())
                    }
                    queen.bees.remove(bee.id);
                    retired += 1;
                }
                Retirement::Busy => {}
                Retirement::Later => later.push(bee),
                Retirement::WithItsTimers => with_timers.push(bee),
            }
        }

        later.iter().for_each(|bee| self.note_idle(bee));
        self.note_with_timers(with_timers);
        self.retired.fetch_add(retired as u64, Ordering::Relaxed);
        retired
    }
}

/// For a mutant: breaks the rule that the log learns of a bee's end before any other bee gets its cells. The log learns it
/// when the hive stops, so after any other bee.
fn say_late(link: Arc<Link>, record: Record, hive: &Arc<HiveInner>) {
    let waiting = hive.clone();
    hive.spawn(Box::pin(async move {
        waiting.over().await;
        drop(link.say(record))
    }))
}

/// Polls a future once, without registering a waker.
fn poll_once<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
