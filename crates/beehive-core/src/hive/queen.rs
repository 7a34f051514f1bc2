//! The queen of an app: finds or makes the bee of cells that have none, merges bees, retires idle ones.

use crate::app::App;
use crate::cell::{BeeId, CellId, CellSet};
use crate::hive::HiveInner;
use crate::hive::bee::{Bee, Retirement};
use crate::hive::journal::Record;
use crate::hive::registry::{Decision, Proposal, Unavailable};
use crate::hive::runtime::AppRuntime;
use crate::hive::turn::{Place, Turn};
use crate::seams::BoxFuture;
use crate::state::column::Columns;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How long the queen waits before it asks again when no decision can be had.
const RETRY: Duration = Duration::from_millis(50);

/// The owner of a set of cells, or what stands in the way.
pub(crate) enum Owner<A: App> {
    Bee(Arc<Bee<A>>),
    /// Several bees must be merged first, or the registry has yet to decide.
    NotYet,
}

impl<A: App> AppRuntime<A> {
    /// The one bee that owns all of `cells`, by the local table alone.
    #[inline]
    pub(crate) fn owner(&self, cells: &[CellId]) -> Option<Arc<Bee<A>>> {
        let (first, rest) = cells.split_first()?;
        let bee = self.routes.find(*first)?;
        rest.iter().all(|cell| self.routes.leads_to(*cell, &bee)).then_some(bee)
    }

    /// The owner of each set of cells; all that are not known are claimed with one proposal.
    pub(crate) fn claim(self: &Arc<Self>, sets: Vec<CellSet>, hive: &Arc<HiveInner>) -> Vec<Owner<A>> {
        let mut queen = self.queen.lock();
        let proposals = sets.iter().map(|cells| Proposal::Claim { cells: cells.clone() }).collect();
        let mut proposed = self.registry.propose(proposals);
        let decisions = match poll_once(&mut proposed) {
            Poll::Ready(Ok(decisions)) => decisions,
            // the caller's messages wait at their sender, whose lane asks again and waits for the answer
            Poll::Ready(Err(Unavailable)) => return sets.iter().map(|_| Owner::NotYet).collect(),
            Poll::Pending => {
                // what is decided must be carried out, whoever waits for it: a bee may have been made
                let waiting = sets.iter().map(|_| Owner::NotYet).collect();
                let app = self.clone();
                hive.platform.spawn(Box::pin(async move {
                    let Ok(decisions) = proposed.await else { return };
                    let mut queen = app.queen.lock();
                    for (cells, decision) in sets.iter().zip(decisions) {
                        app.carry_out(&mut queen.bees, cells, decision);
                    }
                }));
                return waiting;
            }
        };
        let bees = &mut queen.bees;
        sets.iter().zip(decisions).map(|(cells, decision)| self.carry_out(bees, cells, decision).0).collect()
    }

    /// Carries out what the registry decided about a claim; also returns the bees to be merged.
    fn carry_out(
        self: &Arc<Self>,
        bees: &mut hashbrown::HashMap<BeeId, Arc<Bee<A>>>,
        cells: &[CellId],
        decision: Decision,
    ) -> (Owner<A>, Option<(BeeId, Vec<BeeId>)>) {
        let Decision::Owner { root, created, merging, .. } = decision else { return (Owner::NotYet, None) };
        if created {
            let bee = Bee::new(self, root, cells, self.body());
            bees.insert(root, bee.clone());
            self.count_created();
            for cell in cells {
                self.routes.set(*cell, &bee)
            }
            return (Owner::Bee(bee), None);
        }
        let Some(bee) = bees.get(&root) else { return (Owner::NotYet, None) };
        if !merging.is_empty() {
            return (Owner::NotYet, Some((root, merging)));
        }
        for cell in cells {
            if !self.routes.leads_to(*cell, bee) {
                // a cell without an owner went to the bee that owns the others
                if !bee.own(*cell) {
                    return (Owner::NotYet, None);
                }
                self.routes.set(*cell, bee)
            }
        }
        (Owner::Bee(bee.clone()), None)
    }

    /// Completes when all of `cells` had one owner.
    pub(crate) fn unite(self: &Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        let (app, hive) = (self.clone(), hive.clone());
        Box::pin(async move {
            while !hive.is_over() {
                let proposal = Proposal::Claim { cells: cells.clone() };
                let Ok(decisions) = app.registry.propose(vec![proposal]).await else {
                    hive.platform.sleep(RETRY).await;
                    continue;
                };
                let Some(decision) = decisions.into_iter().next() else { return };
                let (owner, merge) = {
                    let mut queen = app.queen.lock();
                    app.carry_out(&mut queen.bees, &cells, decision)
                };
                match (owner, merge) {
                    (Owner::Bee(_), _) => return,
                    (Owner::NotYet, Some((root, merging))) => {
                        for from in merging {
                            app.fuse(from, root, &hive).await
                        }
                    }
                    // decided on, but not carried out here yet
                    (Owner::NotYet, None) => hive.platform.sleep(Duration::from_micros(100)).await,
                }
            }
        })
    }

    fn bee(&self, id: BeeId) -> Option<Arc<Bee<A>>> {
        self.queen.lock().bees.get(&id).cloned()
    }

    /// Merges `from` into `into`, if both still are what they were: freeze both, in the order of their ids so that two
    /// merges cannot wait for each other, then unite state, cells and waiting messages.
    async fn fuse(self: &Arc<Self>, from: BeeId, into: BeeId, hive: &Arc<HiveInner>) {
        let (Some(source), Some(target)) = (self.bee(from), self.bee(into)) else { return };
        let (low, high) = if from < into { (&source, &target) } else { (&target, &source) };
        let Some(low_body) = low.freeze().await else { return };
        let Some(high_body) = high.freeze().await else {
            return Turn::with(hive, Place::Runners, |turn| low.thaw(low_body, turn));
        };
        if let Some(link) = &self.link {
            link.commit(Record::Fuse { app: self.index, from, into }).await
        }
        let (mut gone, mut body) = if from < into { (low_body, high_body) } else { (high_body, low_body) };
        {
            let mut queen = self.queen.lock();
            body.app.absorb(&mut gone.app);
            if let (Some(tail), Some(other)) = (&mut body.tail, &mut gone.tail) {
                tail.base.absorb(std::mem::take(&mut other.base));
                tail.seen.absorb(std::mem::take(&mut other.seen));
                // it may bring cells that it has not worked on
                tail.cells_logged = 0
            }
            body.now = body.now.max(gone.now);
            body.traffic.absorb(std::mem::take(&mut gone.traffic));
            for cell in target.take_over(&source) {
                self.routes.set(cell, &target)
            }
            queen.bees.remove(&from);
        }
        self.merged.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(app = A::NAME, %from, %into, "merged");
        // told until it is heard, before anybody can make the target do something else
        while self.registry.propose(vec![Proposal::Fused { from, into }]).await.is_err() && !hive.is_over() {
            hive.platform.sleep(RETRY).await
        }
        Turn::with(hive, Place::Runners, |turn| target.thaw(body, turn))
    }

    /// Tells the registry that a bee is no more, for as long as it takes to be heard. Until then the registry names a bee
    /// that is not there, and whoever asks for its cells asks again.
    fn release(self: &Arc<Self>, bee: BeeId, hive: &Arc<HiveInner>) {
        let mut proposed = self.registry.propose(vec![Proposal::Release { bee }]);
        if let Poll::Ready(Ok(_)) = poll_once(&mut proposed) {
            return;
        }
        let (app, hive) = (self.clone(), hive.clone());
        let platform = hive.platform.clone();
        platform.spawn(Box::pin(async move {
            while !hive.is_over() && app.registry.propose(vec![Proposal::Release { bee }]).await.is_err() {
                hive.platform.sleep(RETRY).await
            }
        }))
    }

    /// Ends the bees that are idle and own nothing but empty cells. Returns how many.
    pub(crate) fn retire_idle(self: &Arc<Self>, hive: &Arc<HiveInner>) -> usize {
        let (mut retired, mut later) = (0, Vec::new());
        for bee in self.take_idle() {
            let mut queen = self.queen.lock();
            let ended = bee.retire(|cells, floors| {
                self.release(bee.id, hive);
                if let Some(link) = &self.link {
                    // nobody waits for it: until it is committed the log has a bee without content
                    let (link, app, bee) = (link.clone(), self.index, bee.id);
                    let record = Record::Release { app, bee, floors };
                    hive.platform.spawn(Box::pin(async move { link.commit(record).await }))
                }
                for cell in cells {
                    self.routes.remove(*cell, &bee)
                }
            });
            match ended {
                Retirement::Ended => {
                    queen.bees.remove(&bee.id);
                    retired += 1;
                }
                Retirement::Busy => {}
                Retirement::Later => later.push(bee),
            }
        }
        later.iter().for_each(|bee| self.note_idle(bee));
        self.retired.fetch_add(retired as u64, Ordering::Relaxed);
        retired
    }
}

fn poll_once<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
