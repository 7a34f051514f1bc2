//! Fills the views of a hive with the committed changes of all colonies, including those of other hives' bees.
//!
//! The host of the hive has replicas of the colonies, and tells the hive what each of them applies. If another hive leads the
//! colony, it tells it as soon as the replica knows it. If this hive leads the colony, it tells it before it reports the entry
//! as committed, so that a view contains all that this hive has acknowledged.

use crate::cell::BeeId;
use crate::hive::bee::app::AppRuntime;
use crate::hive::consensus::journal::{AppId, BeeImage, LogState, Record};
use crate::hive::consensus::registry::{ColonyId, Registry};
use crate::hive::dispatch::inner::{Hive, HiveInner};
use crate::limits;
use crate::state::image::Redo;
use crate::view::{Answers, Change, RestoredBee, Views};
use std::sync::{Arc, Weak};

/// Tells a hive what the colonies of its cluster have committed. [`Hive::followed`] returns it.
///
/// Calls for one colony must be in the order of its log, one at a time. Calls for different colonies may be at the same time.
#[derive(Clone)]
pub struct Followed {
    hive: Weak<HiveInner>,
    /// The apps whose views show what all colonies have committed.
    apps: Arc<[(AppId, Arc<Views>)]>,
}

impl std::fmt::Debug for Followed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Followed").field("apps", &self.apps.len()).finish_non_exhaustive()
    }
}

impl Followed {
    /// Tells the state of a colony's log: before the first call of [`applied`](Followed::applied), and when the replica has
    /// skipped entries because it has installed a snapshot. The state must not be older than what was told before.
    pub fn restored(&self, colony: ColonyId, state: &LogState) {
        self.tell(colony, |app, dicts| restored(state, app, dicts).into_iter());
    }

    /// Tells a record that has taken effect. `state` is the state of the log after it.
    ///
    /// This only puts changes of dictionaries with views into a queue, unless the queue is full.
    pub fn applied(&self, colony: ColonyId, record: &Record, state: &LogState) {
        self.tell(colony, |app, dicts| changes(record, state, app, dicts));
    }

    fn tell<I: Iterator<Item = Change>>(&self, colony: ColonyId, changes: impl Fn(AppId, u64) -> I) {
        let Some(hive) = self.hive.upgrade() else { return };
        for (app, views) in &*self.apps {
            let mut changes = changes(*app, views.dictionaries()).peekable();
            if changes.peek().is_some() {
                views.follow(colony, changes, hive.now())
            }
        }
    }
}

/// Returns the state of a log as a change of one app's views.
pub(in crate::hive) fn restored(state: &LogState, app: AppId, dicts: u64) -> Option<Change> {
    let copy = |bee: BeeId, image: &BeeImage| RestoredBee {
        bee,
        epoch: image.epoch,
        is_frozen: image.is_frozen(),
        rows: image.state.of_dictionaries(dicts),
    };
    let bees = state.bees.iter().filter(|((of, _), _)| *of == app);
    let staged = state.staged.iter().filter(|((of, _), staged)| *of == app && staged.is_complete());
    Some(Change::Restored {
        bees: bees.map(|((_, bee), image)| copy(*bee, image)).collect(),
        staged: staged.map(|((_, bee), staged)| copy(*bee, &staged.bee)).collect(),
        known: state.known,
    })
}

/// Returns what a record changes in the dictionaries `dicts` of an app.
fn changes<'a>(
    record: &'a Record,
    state: &'a LogState,
    app: AppId,
    dicts: u64,
) -> impl Iterator<Item = Change> + 'a {
    let works = match record {
        Record::Turn(works) => &works[..],
        _ => &[],
    };
    let rows = works.iter().filter(move |work| work.app == app).filter_map(move |work| {
        let is_shown = |dict: u32| dicts.checked_shr(dict).is_some_and(|rest| rest & 1 == 1);
        let redo: Redo = work.redo.iter().filter(|op| is_shown(op.dict)).collect();
        (!redo.is_empty()).then_some(Change::Rows { bee: work.bee, known: state.known, redo })
    });
    let rows_of = move |bee| {
        let image = state.bees.get(&(app, bee));
        image.map(|image| image.state.of_dictionaries(dicts)).unwrap_or_default()
    };
    let of_bee = match record {
        Record::Adopt { app: of, bee, epoch, view }
            if *of == app && state.bees.contains_key(&(app, *bee)) =>
        {
            Some(Change::Begin { bee: *bee, epoch: *epoch, view: *view, rows: rows_of(*bee) })
        }
        Record::Create { app: of, bee, view } if *of == app => Some(Change::Begin {
            bee: *bee,
            epoch: Default::default(),
            view: *view,
            rows: Default::default(),
        }),
        Record::Freeze { app: of, bee, view, .. } if *of == app => {
            Some(Change::Freeze { bee: *bee, view: *view })
        }
        Record::Thaw { app: of, bee, epoch, view } if *of == app => {
            Some(Change::Thaw { bee: *bee, epoch: *epoch, view: *view })
        }
        Record::Drop { app: of, bee, .. } if *of == app => Some(Change::Drop { bee: *bee }),
        Record::Release { app: of, bee, view, .. } if *of == app => {
            Some(Change::Release { bee: *bee, view: *view })
        }
        Record::Fuse { app: of, from, into, view } if *of == app => {
            Some(Change::Fuse { from: *from, into: *into, view: *view })
        }
        Record::Split { app: of, bee, new, keys, view, .. } if *of == app => {
            Some(Change::Split { bee: *bee, new: *new, cells: keys.clone(), view: *view })
        }
        _ => None,
    };
    rows.chain(of_bee)
}

impl Hive {
    /// Returns the receiver of what the colonies have committed. Returns `None` if nothing reads it: no journaled app has views,
    /// or the hive was started without [`Membership::follows`](crate::cluster::Membership::follows).
    pub fn followed(&self) -> Option<Followed> {
        let apps = self.inner().apps.read();
        let runtimes = apps.iter().filter_map(|app| app.as_any().downcast_ref::<AppRuntime>());
        let apps: Arc<[_]> = runtimes.filter_map(of_app).collect();
        (!apps.is_empty()).then(|| Followed { hive: Arc::downgrade(self.inner()), apps })
    }
}

fn of_app(app: &AppRuntime) -> Option<(AppId, Arc<Views>)> {
    let views = app.views.as_ref().filter(|views| views.is_following())?;
    Some((AppId(app.index), views.clone()))
}

/// Shows what the log of a colony contains that the hive leads when it starts.
pub(in crate::hive) fn show(apps: &[Arc<AppRuntime>], colony: ColonyId, state: &LogState, hive: &HiveInner) {
    for (app, views) in apps.iter().filter_map(|app| of_app(app)) {
        views.follow(colony, restored(state, app, views.dictionaries()).into_iter(), hive.now())
    }
}

/// Decodes what the colonies have committed, for the apps whose views show that. Until the hive has ended.
pub(in crate::hive) fn begin(apps: &[Arc<AppRuntime>], registry: &Arc<dyn Registry>, hive: &Arc<HiveInner>) {
    for (_, views) in apps.iter().filter_map(|app| of_app(app)) {
        hive.platform.spawn(Box::pin(follow(views, registry.clone(), hive.clone())))
    }
}

async fn follow(views: Arc<Views>, registry: Arc<dyn Registry>, hive: Arc<HiveInner>) {
    loop {
        let waits = views.waits_for_moves();
        tokio::select! {
            biased;
            () = hive.over() => return,
            () = views.news() => hive.platform.sleep(limits::VIEW_FOLLOWED_LINGER).await,
            () = hive.platform.sleep(limits::VIEW_MOVES_CHECKED_EVERY), if waits => {}
        }
        views.catch_up();
        if waits {
            let bees = views.questions();
            let mut answers = Answers::default();
            registry.read(&mut |state| {
                let answer = |bee: &BeeId| state.bee(*bee).map(|entry| (entry.colony, entry.epoch));
                answers.index = state.index();
                answers.places = bees.iter().map(|bee| (*bee, answer(bee))).collect()
            });
            views.decide(&answers, hive.now(), limits::VIEW_LEFT_PATIENCE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::consensus::journal::{Epoch, Staged};

    #[test]
    fn a_restored_log_has_the_complete_copies_of_bees_that_are_about_to_arrive() {
        let mut state = LogState { known: 7, ..LogState::default() };
        let image = |epoch| Box::new(BeeImage { epoch: Epoch(epoch), ..BeeImage::default() });
        let staged = |parts| Staged { bee: image(3), parts, of: 2, ..Staged::default() };
        state.bees.insert((AppId(0), BeeId(1)), image(1));
        for (app, bee, parts) in [(0, 2, 2), (0, 3, 1), (1, 4, 2)] {
            state.staged.insert((AppId(app), BeeId(bee)), staged(parts));
        }
        let Some(Change::Restored { bees, staged, known: 7 }) = restored(&state, AppId(0), 1) else {
            panic!()
        };
        let names = |all: &[RestoredBee]| all.iter().map(|one| (one.bee.0, one.epoch.0)).collect::<Vec<_>>();
        assert_eq!((names(&bees), names(&staged)), (vec![(1, 1)], vec![(2, 3)]));
    }
}
