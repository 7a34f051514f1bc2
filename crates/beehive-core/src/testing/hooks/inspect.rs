//! What a test does with an app whose type it does not know: looks at its cells, merges and moves its bees, copies it.

use crate::cell::{CellId, CellSet};
use crate::context::Ctx;
use crate::hive::dispatch::app_access::{AnyState, AppAccess, Template};
use crate::hive::dispatch::inner::{AnyApp, Hive, HiveInner};
use crate::hive::dispatch::message_types::Types;
use crate::hive::dispatch::outputs::{Outputs, Savepoint};
use crate::hive::dispatch::probe::Replay;
use crate::hive::message::inbox::IoBees;
use crate::seams::BoxFuture;
use crate::state::DecodeError;
use crate::state::image::CellImage;
use std::sync::Arc;

/// One cell of a dictionary in words: `macs[4]`, and what is in it.
pub(crate) type CellWords = (String, String);

/// An app as a test sees it.
pub(crate) trait Inspect {
    /// Returns the operations that need the type of the app.
    fn access(&self) -> Arc<dyn AppAccess>;

    /// Returns the cells that have an owner, in order.
    fn owned_cells(&self) -> Vec<CellId> {
        self.access().owned_cells()
    }

    /// Returns all cells of all bees as bytes, ordered by dictionary and encoded key. None if a bee is running.
    fn images(&self) -> Option<Vec<CellImage>> {
        let mut images = of_every_bee(&*self.access(), |state| state.export())?;
        sort(&mut images);
        Some(images)
    }

    /// Returns all cells of all bees in words, in order. None if a bee is running.
    fn cells_in_words(&self) -> Option<Vec<CellWords>> {
        let mut cells = of_every_bee(&*self.access(), |state| state.in_words())?;
        cells.sort_unstable();
        Some(cells)
    }

    /// Holds up the bee of `cell`, as a slow handler would, until `pause` is over.
    fn hold_up(&self, cell: CellId, pause: BoxFuture<()>, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        self.access().hold_up(cell, pause, hive)
    }

    /// Completes when `cells` have had one owner.
    fn unite_cells(&self, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        self.access().unite_cells(cells, hive)
    }

    /// Returns a replica of the app without cells.
    fn replica(&self) -> Replica {
        let ctx = Ctx::new(Outputs::new(Types::new(Arc::new(IoBees::default()))));
        Replica { app: self.access().template(), ctx }
    }
}

impl Inspect for Arc<dyn AnyApp> {
    fn access(&self) -> Arc<dyn AppAccess> {
        self.clone().for_tests()
    }
}

fn of_every_bee<T>(app: &dyn AppAccess, look: impl Fn(&mut dyn AnyState) -> Vec<T>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    app.look_at_bees(&mut |state| all.append(&mut look(state))).then_some(all)
}

fn sort(images: &mut [CellImage]) {
    images.sort_by(|a, b| (a.dict, &a.key).cmp(&(b.dict, &b.key)))
}

/// An app outside the hive, all of whose cells are in one instance.
pub(crate) struct Replica {
    app: Template,
    pub(crate) ctx: Ctx,
}

impl Replica {
    /// The number of the app.
    pub(crate) fn app(&self) -> u16 {
        self.app.app
    }

    /// The dictionaries.
    pub(crate) fn state(&mut self) -> &mut dyn AnyState {
        &mut *self.app.state
    }

    /// What a message that names `cells` is handled with.
    pub(crate) fn replay<'a>(&'a mut self, cells: &'a CellSet) -> Replay<'a> {
        let Template { state, seed, whole, .. } = &mut self.app;
        Replay { state: state.as_any_mut(), ctx: &mut self.ctx, cells, seed: *seed, whole: *whole }
    }

    /// Where the outputs of the next transaction begin.
    pub(crate) fn mark(&mut self) -> Savepoint {
        self.ctx.out.mark()
    }

    /// Returns all cells, by dictionary and key.
    pub(crate) fn images(&mut self) -> Vec<CellImage> {
        let mut images = self.app.state.export();
        sort(&mut images);
        images
    }

    /// Empties volatile dictionaries: those of `cells`, or all of them if that is None.
    pub(crate) fn forget_volatile(&mut self, cells: Option<&[CellId]>) {
        let Template { state, seed, whole, dicts, .. } = &mut self.app;
        if !dicts.iter().any(|dict| dict.volatile) {
            return;
        }
        let is_gone = |dict: u32, cell: CellId| {
            dicts.iter().filter(|info| info.volatile).any(|info| {
                let owned = if *whole & (1 << dict) != 0 { info.whole(*seed) } else { cell };
                info.index == dict && cells.is_none_or(|cells| cells.contains(&owned))
            })
        };

        // import tells the id of a cell, and there is no way to remove one
        let mut rest = state.fresh();
        let mut known = state.fresh();
        for image in state.export() {
            if let Ok(cell) = known.import(*seed, &image)
                && !is_gone(image.dict, cell)
            {
                let _ = rest.import(*seed, &image);
            }
        }
        *state = rest
    }
}

impl Hive {
    /// Encodes and decodes the state of every bee, one bee after the other, while messages arrive: what a move between hives
    /// does, without the network. Returns how many bees there were. Whatever can be seen of the hive stays the same.
    ///
    /// # Errors
    ///
    /// Returns an error if the state of a bee cannot be decoded; that bee keeps the state that it had.
    pub async fn reimport(&self) -> Result<usize, DecodeError> {
        let apps: Vec<Arc<dyn AnyApp>> = self.inner().apps.read().clone();
        let mut count = 0;
        for app in apps {
            count += Inspect::access(&app).reimport(self.inner().clone()).await?
        }
        Ok(count)
    }
}
