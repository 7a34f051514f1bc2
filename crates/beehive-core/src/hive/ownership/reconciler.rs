//! Moves and merges the bees of a hive in a cluster, as the registry wants it.
//!
//! Nobody coordinates: the reconciler of each hive compares the registry with the outlines of the hive's logs, and takes
//! the steps that `beehive-protocol` names ([`changes`](beehive_protocol::changes)). All of them are idempotent, so a
//! crash or a lost packet only delays them.
//!
//! ```text
//!  registry ──┐                ┌──► leaving.rs: Freeze, Drop, Thaw
//!  outlines ──┼──► changes ────┼──► copies.rs: the parts of a copy, Stage, Unstage
//!             │                ├──► hosting.rs: Adopt
//!             │                ├──► unhosting.rs: the hive no longer leads a log
//!             │                ├──► queen.rs: Fuse
//!             └──◄ committed ──┴──► proposals, Told
//! ```

use crate::cell::BeeId;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::{AppId, BeeImage, Epoch, LogState, Record, Untold};
use crate::hive::consensus::registry::{Decision, Proposal, RegistryState, Unavailable};
use crate::hive::dispatch::inner::{AnyApp, HiveInner};
use crate::hive::dispatch::turn::Link;
use crate::hive::links::frame::Body;
use crate::hive::links::links::Links;
use crate::hive::ownership::copies::Sending;
use crate::hive::ownership::queen::RETRY;
use crate::limits;
use crate::time::Time;
use beehive_protocol::{Aim, Leader, Step, changes};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A bee in a log of the hive, which is named by its position.
pub(super) type Key = (usize, AppId, BeeId);

/// Pause after a step that could not be taken.
const PAUSE: Duration = Duration::from_millis(1);

/// Time between two checks of moves that may take too long.
const CHECK: Duration = Duration::from_secs(1);

/// Moves and merges the bees of a hive.
pub(in crate::hive) struct Reconciler {
    pub(super) hive: Arc<HiveInner>,
    pub(super) links: Arc<Links>,
    /// The apps, by number.
    apps: Vec<Arc<AppRuntime>>,
    /// Notified when the reconciler must look again.
    pub(super) changed: Arc<Notify>,
    pub(super) state: Mutex<State>,
}

/// The steps under way.
#[derive(Default)]
pub(super) struct State {
    /// The bees about which a record is being appended.
    busy: BTreeSet<Key>,
    /// The proposals under way.
    pub(super) proposals: Vec<Proposal>,
    /// The changes about which a log is being told that the registry knows them.
    told: Vec<Untold>,
    /// The frozen bees.
    pub(super) away: BTreeMap<Key, Away>,
    /// The times before which bees do not begin another move, because one has taken too long.
    pub(super) not_before: BTreeMap<Key, Time>,
    /// The copies that are being sent.
    pub(super) sending: BTreeMap<Key, Arc<Sending>>,
    /// The copies to which the staged parts of arriving bees belong.
    pub(super) staging: BTreeMap<Key, u64>,
    /// The positions of the logs that the hive is leaving.
    pub(super) unhosting: BTreeSet<usize>,
}

/// A frozen bee.
pub(super) struct Away {
    pub(super) bee: Arc<Bee>,
    /// The time at which it was frozen, or at which the target last had more of it.
    pub(super) since: Time,
    /// Its content ([`LogState::detach`]). It does not change, so nobody needs a lock to read it.
    pub(super) content: Arc<LogState>,
}

/// Returns the bee of whose end the registry must be told.
pub(super) fn ended_by(untold: &Untold) -> Option<BeeId> {
    match untold {
        Untold::Released { bee } | Untold::Fused { from: bee, .. } => Some(*bee),
        Untold::Split { .. } => None,
    }
}

/// Checks whether a log has a copy of a bee with this epoch, which has not been decided about yet.
fn is_staged(link: &Link, bee: BeeId, epoch: Epoch) -> bool {
    link.outline.lock().log.staged.iter().any(|((_, id), staged)| (*id, staged.bee.epoch) == (bee, epoch))
}

impl Reconciler {
    /// Creates the reconciler of a hive in a cluster. It does nothing before [`Reconciler::begin`] and [`Reconciler::run`].
    pub(in crate::hive) fn new(
        hive: &Arc<HiveInner>,
        links: &Arc<Links>,
        apps: Vec<Arc<AppRuntime>>,
    ) -> Arc<Reconciler> {
        let changed = hive.logs.as_ref().map(|logs| logs.changed.clone()).unwrap_or_default();
        let (hive, links) = (hive.clone(), links.clone());
        let reconciler = Arc::new(Reconciler { hive, links, apps, changed, state: Mutex::default() });
        let this: Arc<dyn Any + Send + Sync> = reconciler.clone();
        let _ = reconciler.hive.reconciler.set(Arc::downgrade(&this));
        reconciler
    }

    /// Returns the reconciler of a hive. Returns `None` if the hive is not in a cluster, or is over.
    pub(in crate::hive) fn of(hive: &HiveInner) -> Option<Arc<Reconciler>> {
        hive.reconciler.get()?.upgrade()?.downcast().ok()
    }

    /// Returns the apps, by number.
    pub(in crate::hive) fn apps(&self) -> &[Arc<AppRuntime>] {
        &self.apps
    }

    /// Returns the number of steps under way, of bees that are about to move, and of logs that the hive is leaving.
    #[cfg(feature = "testing")]
    pub(in crate::hive) fn under_way(&self) -> usize {
        let State { busy, proposals, told, away, not_before, sending, staging, unhosting } =
            &*self.state.lock();
        let bees = busy.len() + away.len() + not_before.len() + sending.len() + staging.len();
        bees + proposals.len() + told.len() + unhosting.len()
    }

    /// Looks at the logs again, because the hive leads another one.
    pub(in crate::hive) fn look_again(&self) {
        self.changed.notify_one()
    }

    /// Runs until the hive is over.
    pub(in crate::hive) async fn run(self: Arc<Self>) {
        loop {
            let over = self.hive.ended.notified();
            if self.hive.is_over() {
                return;
            }
            let index = self.links.registry.index();
            self.links.follow_leaders();
            self.leave_lost_logs();
            self.round();
            let is_waiting = {
                let state = self.state.lock();
                !state.away.is_empty() || !state.not_before.is_empty()
            };
            let check = if is_waiting { CHECK } else { Duration::from_secs(3600) };
            tokio::select! {
                biased;
                () = over => {}
                () = self.changed.notified() => {}
                () = self.links.registry.wait(index + 1) => {}
                () = self.hive.platform.sleep(check) => {}
            }
        }
    }

    /// Takes all steps that can be taken now.
    fn round(self: &Arc<Self>) {
        while let Some((from, body)) = self.links.pop_move() {
            match body {
                Body::Stage(frame) => self.staging_part(from, frame),
                Body::Staged(staged) => self.staged(staged),
                _ => {}
            }
        }
        let now = self.hive.now();
        self.state.lock().not_before.retain(|_, until| *until > now);
        for link in self.hive.log_clients().iter().filter(|link| !link.is_deposed()) {
            for step in self.steps(link) {
                self.take(link, step)
            }
        }
    }

    pub(super) fn app(&self, app: AppId) -> Option<&Arc<AppRuntime>> {
        self.apps.get(app.index())
    }

    /// Calls `look` with the replica of the registry and the outline of a log, to which `active`, bees of the log that
    /// handle messages, are added for the time of the call.
    pub(super) fn look<R>(
        &self,
        link: &Link,
        active: &[(AppId, BeeId)],
        look: impl FnOnce(&RegistryState, &LogState) -> R,
    ) -> Option<R> {
        let (mut look, mut looked) = (Some(look), None);
        self.links.registry.read(&mut |view| {
            let Some(look) = look.take() else { return };
            let mut outline = link.outline.lock();
            let mut added = Vec::new();
            for (app, bee) in active {
                let is_here = view.bee(*bee).is_some_and(|entry| entry.colony == link.colony());
                if is_here && !outline.log.bees.contains_key(&(*app, *bee)) {
                    let image = BeeImage { epoch: outline.epoch(*app, *bee), ..BeeImage::default() };
                    outline.log.bees.insert((*app, *bee), Box::new(image));
                    added.push((*app, *bee))
                }
            }
            looked = Some(look(view, &outline.log));
            added.iter().for_each(|bee| {
                outline.log.bees.remove(bee);
            })
        });
        looked
    }

    /// Returns those of these bees that handle messages in this hive.
    pub(super) fn active(&self, bees: impl IntoIterator<Item = (AppId, BeeId)>) -> Vec<(AppId, BeeId)> {
        let is_active = |(app, bee): &(AppId, BeeId)| {
            self.app(*app).is_some_and(|app| app.bee(*bee).is_some_and(|bee| bee.is_active()))
        };
        bees.into_iter().filter(is_active).collect()
    }

    pub(super) fn steps(&self, link: &Arc<Link>) -> Vec<Step> {
        let (at, colony, now) = (link.position(), link.colony(), self.hive.now());
        // the bees with aims, and those into which they merge
        let mut named = BTreeSet::new();
        self.links.registry.read(&mut |view| {
            for bee in view.aimed_at(colony) {
                let Some(entry) = view.bee(bee) else { continue };
                named.insert((entry.app, bee));
                if let Some(Aim::Bee(into)) = entry.aim {
                    named.insert((entry.app, into));
                }
            }
        });
        named.extend(link.outline.lock().log.staged.keys());
        let active = self.active(named);
        let (cancelled, under_way) = {
            let state = self.state.lock();
            let is_late = |since: Time| now.since(since) >= limits::MOVE_STAGED_AFTER_MAX;
            let of_log = state.away.iter().filter(|((log, ..), away)| *log == at && is_late(away.since));
            (of_log.map(|((.., bee), _)| *bee).collect(), state.proposals.clone())
        };
        let steps = self
            .look(link, &active, |view, log| changes(Leader { colony, log, view }, &cancelled, &under_way));
        steps.unwrap_or_default()
    }

    fn take(self: &Arc<Self>, link: &Arc<Link>, step: Step) {
        let (at, this, link) = (link.position(), self.clone(), link.clone());
        match step {
            Step::Propose(Proposal::Commit { bee, epoch, .. }) if is_staged(&link, bee, epoch.next()) => {
                self.ask_for(&link, bee, epoch)
            }
            Step::Propose(proposal) => self.propose(proposal),
            Step::Send { app, bee, to } => self.send_copy(&link, (app, bee), to),
            Step::Append(Record::Told { what, view }) => {
                let mut state = self.state.lock();
                if state.told.contains(&what) {
                    return;
                }
                state.told.push(what.clone());
                drop(state);
                // the replica knows it, so nobody asks for these bees any more
                let ended: Vec<BeeId> = ended_by(&what).into_iter().collect();
                self.apps.iter().for_each(|app| app.forget_ended(&ended));
                self.hive.spawn(Box::pin(async move {
                    // if the hive loses the log first, the next leader says it
                    let _ = link.commit(Record::Told { what: what.clone(), view }).await;
                    this.state.lock().told.retain(|told| *told != what);
                    this.changed.notify_one()
                }))
            }
            Step::Append(Record::Create { app, bee, .. }) => {
                if let Some(runtime) = self.app(app) {
                    runtime.create(bee)
                }
            }
            Step::Append(record) => match record {
                Record::Freeze { app, bee, to, view, .. } => {
                    let key = (at, app, bee);
                    if self.may_leave(key) {
                        self.work([key], async move { this.leave(&link, key, to, view).await })
                    }
                }
                Record::Fuse { app, from, into, .. } => {
                    let Some(runtime) = self.app(app).cloned() else { return };
                    self.work([(at, app, from), (at, app, into)], async move {
                        runtime.fuse(from, into, &this.hive).await;
                        this.hive.platform.sleep(PAUSE).await
                    })
                }
                Record::Adopt { app, bee, .. } => {
                    self.work([(at, app, bee)], async move { this.adopt(&link, (app, bee), record).await })
                }
                Record::Thaw { app, bee, .. } => {
                    self.work([(at, app, bee)], async move { this.thaw(&link, (app, bee), record).await })
                }
                Record::Drop { app, bee, .. } => self
                    .work([(at, app, bee)], async move { this.drop_moved(&link, (app, bee), record).await }),
                Record::Unstage { app, bee, .. } => self.work([(at, app, bee)], async move {
                    // Since this step was found, a part of a newer copy may have been staged. As long as this work goes on,
                    // none is
                    let is_it = |step: &Step| {
                        matches!(step, Step::Append(Record::Unstage { app: its, bee: other, .. }) if (*its, *other) == (app, bee))
                    };
                    if !this.steps(&link).iter().any(is_it) {
                        return;
                    }
                    if link.commit(record).await {
                        this.state.lock().staging.remove(&(at, app, bee));
                    }
                }),
                other => debug_assert!(false, "no leader of a running hive appends {other:?}"),
            },
        }
    }

    /// Does work that concerns bees, unless other work concerns one of them.
    pub(super) fn work<const N: usize>(
        self: &Arc<Self>,
        keys: [Key; N],
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut state = self.state.lock();
        if keys.iter().any(|key| state.busy.contains(key)) {
            return;
        }
        state.busy.extend(keys);
        drop(state);
        let this = self.clone();
        self.hive.spawn(Box::pin(async move {
            work.await;
            let mut state = this.state.lock();
            keys.iter().for_each(|key| {
                state.busy.remove(key);
            });
            drop(state);
            this.changed.notify_one()
        }))
    }

    /// Waits for a moment, because a step could not be taken.
    pub(super) async fn pause(&self) {
        self.hive.platform.sleep(RETRY).await
    }

    /// Makes a proposal. Until the replica of the registry knows the decision, it is not made again.
    pub(super) fn propose(self: &Arc<Self>, proposal: Proposal) {
        self.state.lock().proposals.push(proposal.clone());
        let this = self.clone();
        self.hive.spawn(Box::pin(async move {
            let decided = async {
                match this.links.registry.propose(vec![proposal.clone()]).await {
                    Ok(decisions) => {
                        let index = decisions.last().map_or(0, Decision::index);
                        this.links.registry.wait(index).await
                    }
                    Err(Unavailable) => this.pause().await,
                }
            };
            tokio::select! {
                biased;
                () = decided => {}
                () = this.hive.over() => return,
            }
            this.state.lock().proposals.retain(|other| *other != proposal);
            this.changed.notify_one()
        }))
    }
}
