//! A bee that has not run since its hive restarted on a log. It has no body yet, only its image in the log.
//!
//! A restarting hive decodes each image once, to check it and to fill the views, but keeps no dictionaries. A bee gets
//! its body when it first runs, when it is frozen for a merge or a move, or when a tick or a sweep visits it. Until
//! then, it takes little more memory than its rows.

use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Body;
use crate::hive::consensus::journal::BeeImage;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::Link;
use crate::state::any::AnyState;
use crate::state::image::DecodeError;
use std::any::Any;
use std::sync::Arc;

/// A bee without a body.
pub(crate) struct Asleep {
    image: BeeImage,
    log: Arc<Link>,
    queue: SenderQueue,
}

impl Asleep {
    /// Creates a bee from its image in `log`, and shows its rows in the app's views.
    ///
    /// # Errors
    ///
    /// Returns an error if the image cannot be decoded, or contains cells that the bee does not own.
    pub(crate) fn new(
        app: &AppRuntime,
        image: BeeImage,
        log: &Arc<Link>,
        queue: SenderQueue,
    ) -> Result<Box<Asleep>, DecodeError> {
        let mut state = app.fresh();
        import(app, &image, &mut *state)?;

        let elsewhere = app.dicts.iter().any(|dict| {
            let (whole, mut elsewhere) = (app.whole_cell(dict.index), false);
            let mut look = |cell, _: &dyn Any| elsewhere |= !image.cells.contains(&whole.unwrap_or(cell));
            state.cells_of(dict.index, &mut look);
            elsewhere
        });

        if elsewhere {
            let why =
                "it has cells that the log does not assign to it: was the log written with another `seed`?"
                    .into();
            return Err(DecodeError { what: "a bee", why });
        }

        if let Some(views) = &app.views {
            state.publish_restored(views, image.now)
        }
        Ok(Box::new(Asleep { image, log: log.clone(), queue }))
    }

    /// Returns the bee's image.
    pub(super) fn image(&self) -> &BeeImage {
        &self.image
    }

    /// Returns the position of the bee's log.
    pub(super) fn log(&self) -> usize {
        self.log.position()
    }

    /// Returns the bee's body.
    ///
    /// # Panics
    ///
    /// Panics if the image cannot be decoded, although it could be when the hive started.
    pub(super) fn wake(self, app: &AppRuntime) -> Box<Body> {
        let Asleep { image, log, queue } = self;
        let mut body = app.body(Some(&log));
        if let Err(error) = import(app, &image, &mut body.app) {
            panic!(
                "a bee of `{}` was decoded when the hive started, but cannot be decoded now: {error}",
                app.name
            )
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
        }
        body.now = image.now;
        body.queue = queue;
        body
    }
}

/// Decodes the cells of an image into the dictionaries of `state`.
fn import(app: &AppRuntime, image: &BeeImage, state: &mut dyn AnyState) -> Result<(), DecodeError> {
    image.state.images().try_for_each(|cell| state.import(app.seed, &cell).map(drop))
}
