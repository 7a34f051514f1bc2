//! `AppAccess`: operations on an app whose type the caller does not know, for the `testing` feature.

use crate::app::Handlers;
use crate::cell::{CellId, CellSet};
use crate::hive::HiveInner;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::bee::Bee;
use crate::hive::bee::routing_table::Routes;
use crate::hive::dispatch::blocked::Owners;
use crate::hive::dispatch::turn::{Place, Turn};
use crate::mapper::DictInfo;
use crate::panics;
use crate::seams::BoxFuture;
use crate::state::column::Columns;
use crate::state::image::{CellImage, DecodeError, Op, decode, encode_many};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The dictionaries of one bee of an app whose type the caller does not know.
pub(crate) trait AnyState: Send {
    /// The state, to be downcast to the type of the app.
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// Returns all cells as bytes, those of volatile dictionaries too.
    fn export(&mut self) -> Vec<CellImage>;
    /// Puts a cell in place; returns its id under `seed`.
    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError>;
    /// Returns all cells in words.
    fn in_words(&mut self) -> Vec<(String, String)>;
    /// Returns what the transaction changed.
    fn changes(&mut self) -> Vec<Op>;
    /// Keeps what the transaction changed.
    fn commit(&mut self);
    /// Undoes what the transaction changed.
    fn rollback(&mut self);
    /// Returns empty dictionaries with the same settings.
    fn fresh(&self) -> Box<dyn AnyState>;
}

impl<A: Handlers> AnyState for A {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn export(&mut self) -> Vec<CellImage> {
        Columns::export(self, true)
    }

    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError> {
        Columns::import(self, seed, image)
    }

    fn in_words(&mut self) -> Vec<(String, String)> {
        Columns::in_words(self)
    }

    fn changes(&mut self) -> Vec<Op> {
        let mut changes = Vec::new();
        let _ = panics::catch(AssertUnwindSafe(|| Columns::redo(self, &mut changes)));
        changes
    }

    fn commit(&mut self) {
        Columns::commit(self)
    }

    fn rollback(&mut self) {
        Columns::rollback(self)
    }

    fn fresh(&self) -> Box<dyn AnyState> {
        Box::new(crate::state::State::fresh(self))
    }
}

/// An app without cells, outside the hive.
pub(crate) struct Template {
    pub(crate) state: Box<dyn AnyState>,
    /// The number of the app.
    pub(crate) app: u16,
    /// The seed for cell ids.
    pub(crate) seed: u64,
    /// The dictionaries that are one cell as a whole, a bit for each.
    pub(crate) whole: u64,
    pub(crate) dicts: &'static [DictInfo],
}

/// Access to the bees of an app.
pub(crate) trait AppAccess: Send + Sync {
    /// Returns the cells that have an owner, in order.
    fn owned_cells(&self) -> Vec<CellId>;
    /// Calls `look` with the state of each bee, under the queen's lock. Returns false, possibly after some calls, if a bee is
    /// running.
    fn look_at_bees(&self, look: &mut dyn FnMut(&mut dyn AnyState)) -> bool;
    /// Returns the app without cells.
    fn template(&self) -> Template;
    /// Takes the body of the bee of `cell` and gives it back when `pause` is over, as a slow handler would.
    fn hold_up(self: Arc<Self>, cell: CellId, pause: BoxFuture<()>, hive: &Arc<HiveInner>) -> BoxFuture<()>;
    /// Completes when `cells` have had one owner.
    fn unite_cells(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()>;
    /// Encodes and decodes the state of every bee, one after the other, while messages arrive. Returns how many.
    fn reimport(self: Arc<Self>, hive: Arc<HiveInner>) -> BoxFuture<Result<usize, DecodeError>>;
}

impl<A: Handlers> AppAccess for AppRuntime<A> {
    fn owned_cells(&self) -> Vec<CellId> {
        let shards = 0..Routes::<A>::SHARDS;
        let mut cells: Vec<CellId> =
            shards.flat_map(|s| self.routes.cells_of_shard(s)).map(|(cell, _)| cell).collect();
        cells.sort_unstable();
        cells
    }

    fn look_at_bees(&self, look: &mut dyn FnMut(&mut dyn AnyState)) -> bool {
        let queen = self.queen.lock();
        queen.bees.values().all(|bee| bee.peek(|body| look(&mut body.app)).is_some())
    }

    fn template(&self) -> Template {
        Template {
            state: Box::new(self.fresh()),
            app: self.index,
            seed: self.seed,
            whole: self.whole,
            dicts: A::DICTS,
        }
    }

    fn hold_up(self: Arc<Self>, cell: CellId, pause: BoxFuture<()>, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        let hive = hive.clone();
        Box::pin(async move {
            let Some(bee) = self.routes.find(cell) else { return };
            let Some(body) = bee.freeze().await else { return };
            pause.await;
            Turn::with(&hive, Place::Runners, |turn| bee.thaw(body, turn))
        })
    }

    fn unite_cells(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        Owners::unite(self, cells, hive)
    }

    fn reimport(self: Arc<Self>, hive: Arc<HiveInner>) -> BoxFuture<Result<usize, DecodeError>> {
        Box::pin(async move {
            let mut count = 0;
            let bees: Vec<Arc<Bee<A>>> = self.queen.lock().bees.values().cloned().collect();
            for bee in bees {
                let Some(mut body) = bee.freeze().await else { continue };
                let state = again(&self, &mut body.app);
                let failed = state.map(|state| body.app = state).err();

                // also if it failed: the bee then goes on with the state that it had
                Turn::with(&hive, Place::Runners, |turn| bee.thaw(body, turn));
                if let Some(error) = failed {
                    return Err(error);
                }
                count += 1;
            }
            Ok(count)
        })
    }
}

/// Encodes a bee's state, and decodes it into a new instance of the app.
fn again<A: Handlers>(app: &AppRuntime<A>, state: &mut A) -> Result<A, DecodeError> {
    let encoded = panics::catch(AssertUnwindSafe(|| encode_many(&Columns::export(state, true))));
    let images = encoded.map_err(|panic| DecodeError { what: "a bee", why: panics::text(&*panic) })?;
    let mut decoded = app.fresh();
    for image in decode::<Vec<CellImage>>("a bee", &images)? {
        Columns::import(&mut decoded, app.seed, &image)?;
    }
    Ok(decoded)
}
