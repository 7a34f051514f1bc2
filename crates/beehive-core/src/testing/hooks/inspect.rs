//! Operations for tests that do not know an app's type. They inspect its cells, merge and re-encode its bees, and copy
//! the app.

use crate::cell::{CellId, CellSet};
use crate::context::Ctx;
use crate::hive::dispatch::app_access::{AppAccess, Template};
use crate::hive::dispatch::inner::{AnyApp, Hive, HiveInner};
use crate::hive::dispatch::outputs::{Outputs, Savepoint};
use crate::hive::dispatch::probe::Replay;
use crate::hive::dispatch::types::message_types::Types;
use crate::hive::message::inbox::IoBees;
use crate::seams::BoxFuture;
use crate::state::DecodeError;
use crate::state::any::AnyState;
use crate::state::image::CellImage;
use std::sync::Arc;

/// One cell of a dictionary as text: its name, such as `macs[4]`, and its content.
pub(crate) type CellWords = (String, String);

/// The operations that tests apply to an app.
pub(crate) trait Inspect {
    /// Returns the operations that need the app's type.
    fn access(&self) -> Arc<dyn AppAccess>;

    /// Returns the cells that have an owner, in order.
    fn owned_cells(&self) -> Vec<CellId> {
        self.access().owned_cells()
    }

    /// Returns all cells of all bees in encoded form, ordered by dictionary and encoded key. Returns `None` if a bee
    /// is running.
    fn images(&self) -> Option<Vec<CellImage>> {
        let mut images = of_every_bee(&*self.access(), |state| state.export())?;
        sort(&mut images);
        Some(images)
    }

    /// Returns all cells of all bees as text, in order. Returns `None` if a bee is running.
    fn cells_in_words(&self) -> Option<Vec<CellWords>> {
        let mut cells = of_every_bee(&*self.access(), |state| state.in_words())?;
        cells.sort_unstable();
        Some(cells)
    }

    /// Blocks the bee of `cell`, as a slow handler would, until `pause` completes.
    fn hold_up(&self, cell: CellId, pause: BoxFuture<()>, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        self.access().hold_up(cell, pause, hive)
    }

    /// Merges the owners of `cells`. Completes once one bee has owned all of them, though by then it may have
    /// retired.
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

/// Collects the results of `look` for the state of every bee. Returns `None` if a bee is running.
fn of_every_bee<T>(app: &dyn AppAccess, look: impl Fn(&mut dyn AnyState) -> Vec<T>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    app.look_at_bees(&mut |state| all.append(&mut look(state))).then_some(all)
}

fn sort(images: &mut [CellImage]) {
    images.sort_by(|a, b| (a.dict, &a.key).cmp(&(b.dict, &b.key)))
}

/// An instance of an app outside the hive, which has all cells.
pub(crate) struct Replica {
    app: Template,
    pub(crate) ctx: Ctx,
}

impl Replica {
    /// Returns the app's number.
    pub(crate) fn app(&self) -> u16 {
        self.app.app
    }

    /// Returns the dictionaries.
    pub(crate) fn state(&mut self) -> &mut dyn AnyState {
        &mut *self.app.state
    }

    /// Returns the arguments for a handler of a message whose map names `cells`.
    pub(crate) fn replay<'a>(&'a mut self, cells: &'a CellSet) -> Replay<'a> {
        let Template { state, seed, whole, .. } = &mut self.app;
        Replay { state: &mut **state, ctx: &mut self.ctx, cells, seed: *seed, whole: *whole }
    }

    /// Takes a savepoint of the outputs. The outputs of the next transaction come after it.
    pub(crate) fn mark(&mut self) -> Savepoint {
        self.ctx.out.mark()
    }

    /// Returns all cells in encoded form, ordered by dictionary and encoded key.
    pub(crate) fn images(&mut self) -> Vec<CellImage> {
        let mut images = self.app.state.export();
        sort(&mut images);
        images
    }

    /// Removes the cells of volatile dictionaries that are in `cells`, or all of them if `cells` is `None`.
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

        // Cells cannot be removed by id, so this copies the remaining cells to `rest`. `known` is needed only for its
        // `import`, which returns the id of an encoded cell.
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
    /// Encodes and decodes the state of every bee, one bee after the other, while messages arrive. A move between hives
    /// would do the same over the network. The operation must not be observable. Returns the number of bees.
    ///
    /// # Errors
    ///
    /// Returns an error if the state of a bee cannot be decoded. That bee keeps its previous state.
    pub async fn reimport(&self) -> Result<usize, DecodeError> {
        let apps: Vec<Arc<dyn AnyApp>> = self.inner().apps.read().clone();
        let mut count = 0;

        for app in apps {
            count += Inspect::access(&app).reimport(self.inner().clone()).await?
        }

        Ok(count)
    }
}
