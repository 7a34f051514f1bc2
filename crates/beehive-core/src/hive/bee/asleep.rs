//! A bee that has not run since its hive began to lead its log. It has no body yet, only its image in the log.
//!
//! A hive decodes each image once, to check it and to fill the views, but keeps no dictionaries: a hive that starts does so
//! before it begins, and one that takes over a log does so afterwards. A bee gets its body when it first runs, when it is
//! frozen for a merge or a move, or when a tick or a sweep visits it. Until then, it takes little more memory than its rows.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Body;
use crate::hive::bee::pending::LogsLeft;
use crate::hive::consensus::journal::BeeImage;
use crate::hive::consensus::registry::ColonyId;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::Link;
use crate::panics::{catch, text};
use crate::state::any::AnyState;
use crate::state::image::{DecodeError, EncodedCells};
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A bee without a body.
pub(crate) struct Asleep {
    image: BeeImage,
    log: Arc<Link>,
    queue: SenderQueue,
    /// The logs that still contain a frozen copy of the bee, if any: see [`PendingRuns::left`].
    ///
    /// [`PendingRuns::left`]: crate::hive::bee::pending::PendingRuns::left
    left: Option<Arc<LogsLeft>>,
    /// Whether the image was checked, and its rows are in the app's views.
    is_shown: bool,
    /// Whether the bee was to get a body, and its image could not be decoded.
    is_unreadable: bool,
}

impl Asleep {
    /// Creates a bee from its image in `log`. Decodes nothing.
    pub(crate) fn new(image: BeeImage, log: &Arc<Link>, queue: SenderQueue) -> Box<Asleep> {
        Box::new(Asleep { image, log: log.clone(), queue, left: None, is_shown: false, is_unreadable: false })
    }

    /// Returns the logs that the bee has left and that have not dropped it yet, for the caller to add one.
    pub(in crate::hive) fn left(&mut self) -> &Arc<LogsLeft> {
        self.left.get_or_insert_default()
    }

    /// Checks whether [`Asleep::show`] has been called.
    pub(super) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Checks the image, and shows its rows in the app's views. The bee must not run meanwhile.
    ///
    /// # Errors
    ///
    /// Returns an error if the image cannot be decoded, or contains cells that the bee does not own.
    pub(crate) fn show(&mut self, app: &AppRuntime) -> Result<(), DecodeError> {
        // also after an error: it is reported once
        if std::mem::replace(&mut self.is_shown, true) {
            return Ok(());
        }
        let image = &self.image;
        let mut state = decode(app, image, &BTreeSet::new())?;
        if let Some(views) = app.own_views() {
            state.publish_restored(views, image.now)
        }
        Ok(())
    }

    /// Checks an image as [`show`](Self::show) does. `more` are cells of the bee that the image may lack.
    ///
    /// # Errors
    ///
    /// Returns the error of `show`.
    pub(crate) fn check(
        app: &AppRuntime,
        image: &BeeImage,
        more: &BTreeSet<CellId>,
    ) -> Result<(), DecodeError> {
        decode(app, image, more).map(drop)
    }

    /// Returns the bee's image.
    pub(super) fn image(&self) -> &BeeImage {
        &self.image
    }

    /// Returns the client of the bee's log.
    pub(super) fn link(&self) -> &Arc<Link> {
        &self.log
    }

    /// Returns the position of the bee's log.
    pub(super) fn log(&self) -> usize {
        self.log.position()
    }

    /// Returns the colony of the bee's log.
    pub(crate) fn colony(&self) -> ColonyId {
        self.log.colony()
    }

    /// Returns the rows that the app's views show, and the queue of the bee.
    pub(super) fn into_rows(self) -> (EncodedCells, SenderQueue) {
        let rows = if self.is_shown { self.image.state } else { EncodedCells::default() };
        (rows, self.queue)
    }

    /// Checks whether the bee cannot get a body, because its image could not be decoded.
    pub(super) fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    /// Returns the body of the bee, whose id the caller tells.
    ///
    /// # Errors
    ///
    /// Returns the bee if its image cannot be decoded, although the shapes of the log say that it can be. It stays as it is as
    /// long as the hive runs. Reports that, once.
    pub(super) fn wake(mut self: Box<Self>, app: &AppRuntime, id: BeeId) -> Result<Box<Body>, Box<Asleep>> {
        if self.is_unreadable {
            return Err(self);
        }
        let mut body = app.body(Some(&self.log));
        if let Err(error) = import(app, &self.image, &mut body.app) {
            tracing::error!(
                app = app.name,
                bee = %id,
                %error,
                "a bee cannot be decoded, although the shapes in its log can be: it is set aside, and its messages wait until \
                 a hive leads the log that can decode it"
            );
            self.is_unreadable = true;
            return Err(self);
        }
        let Asleep { image, log: _, queue, left, is_shown, is_unreadable: _ } = *self;
        if let Some(views) = app.own_views().filter(|_| !is_shown) {
            // before the bee changes anything
            body.app.publish_restored(views, image.now)
        }

        if let Some(pending) = &mut body.pending {
            pending.base = image.state;
            pending.seen = image.seen;
            pending.cells_logged = image.cells.len();
            pending.is_logged = true;
            pending.forget_unknown();
            pending.next_seq = image.next_seq;
            pending.heir_of = image.heir_of.into_iter().collect();
            pending.epoch = image.epoch;
            pending.registry_epoch = image.epoch;
            pending.left = left
        }
        body.now = image.now;
        body.queue = queue;
        Ok(body)
    }
}

/// Decodes an image, and checks that its rows are in cells of the bee: those that the image contains, and `more`.
fn decode(
    app: &AppRuntime,
    image: &BeeImage,
    more: &BTreeSet<CellId>,
) -> Result<Box<dyn AnyState>, DecodeError> {
    let mut state = app.fresh();
    import(app, image, &mut *state)?;

    let elsewhere = app.dicts.iter().any(|dict| {
        let (whole, mut elsewhere) = (app.whole_cell(dict.index), false);
        let mut look = |cell, _: &dyn Any| {
            let cell = whole.unwrap_or(cell);
            elsewhere |= !image.cells.contains(&cell) && !more.contains(&cell)
        };
        state.cells_of(dict.index, &mut look);
        elsewhere
    });
    if elsewhere {
        let why = "it has cells that the log does not assign to it: was the log written with another `seed`?";
        return Err(DecodeError { what: "a bee", why: why.into() });
    }
    Ok(state)
}

/// Decodes the cells of an image into the dictionaries of `state`. The values are of the app's types, so this runs the app's
/// code: a panic there is an error.
fn import(app: &AppRuntime, image: &BeeImage, state: &mut dyn AnyState) -> Result<(), DecodeError> {
    let import = || image.state.images().try_for_each(|cell| state.import(app.seed, &cell).map(drop));
    catch(AssertUnwindSafe(import)).unwrap_or_else(|panic| {
        let why = format!("the code that decodes it panics: {}", text(&*panic));
        Err(DecodeError { what: "a bee", why })
    })
}
