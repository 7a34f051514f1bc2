//! Implements `AppAccess`: operations on an app, for callers that do not know its type. For the `testing`
//! feature.

use crate::app::Handlers;
use crate::cell::{CellId, CellSet};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::routing_table::Routes;
use crate::hive::dispatch::app_access::{AnyState, AppAccess, Template};
use crate::hive::dispatch::blocked::Owners;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Place, Turn};
use crate::panics;
use crate::seams::BoxFuture;
use crate::state::column::Columns;
use crate::state::image::{CellImage, DecodeError, Redo, decode_many, encode_many};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

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

    fn changes(&mut self) -> Redo {
        let mut changes = Redo::default();
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

                // thaws the bee even after a failure; the bee then continues with its old state
                Turn::with(&hive, Place::Runners, |turn| bee.thaw(body, turn));
                if let Some(error) = failed {
                    return Err(error);
                }
                count += 1;
            }
            Ok(count)
        })
    }

    fn move_bee_of(self: Arc<Self>, cell: CellId, pick: usize, hive: Arc<HiveInner>) -> BoxFuture<bool> {
        Box::pin(async move {
            let Some(bee) = self.routes.find(cell) else { return false };
            let Some(to) = self.links.get(pick % self.links.len().max(1)).cloned() else { return false };
            let Some(mut body) = bee.freeze().await else { return false };
            let is_elsewhere = body.pending.as_ref().is_some_and(|pending| !Arc::ptr_eq(pending.link(), &to));
            let has_moved = is_elsewhere && self.transfer(&bee, &mut body, &to, &hive).await;
            Turn::with(&hive, Place::Runners, |turn| bee.thaw(body, turn));
            has_moved
        })
    }
}

/// Encodes a bee's state and decodes it into a new instance of the app.
fn again<A: Handlers>(app: &AppRuntime<A>, state: &mut A) -> Result<A, DecodeError> {
    let encoded = panics::catch(AssertUnwindSafe(|| encode_many(&Columns::export(state, true))));
    let images = encoded.map_err(|panic| DecodeError { what: "a bee", why: panics::text(&*panic) })?;
    let mut decoded = app.fresh();
    for image in decode_many::<Vec<CellImage>>("a bee", &images)? {
        Columns::import(&mut decoded, app.seed, &image)?;
    }
    Ok(decoded)
}
