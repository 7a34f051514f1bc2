//! Implements `AppAccess`: operations on an app, for callers that do not know its type. For the `testing`
//! feature.

use crate::cell::{CellId, CellSet};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::routing_table::Routes;
use crate::hive::dispatch::app_access::{AppAccess, Template};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::blocked::Owners;
use crate::hive::dispatch::turn::{Place, Turn};
use crate::panics;
use crate::seams::BoxFuture;
use crate::state::any::AnyState;
use crate::state::image::{CellImage, DecodeError, decode_many, encode_many};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

impl AppAccess for AppRuntime {
    fn owned_cells(&self) -> Vec<CellId> {
        let shards = 0..Routes::SHARDS;
        let mut cells: Vec<CellId> =
            shards.flat_map(|s| self.routes.cells_of_shard(s)).map(|(cell, _)| cell).collect();
        cells.sort_unstable();
        cells
    }

    fn look_at_bees(&self, look: &mut dyn FnMut(&mut dyn AnyState)) -> bool {
        let queen = self.queen.lock();
        queen.bees.values().all(|bee| bee.wake_and_peek(|body| look(&mut body.app)).is_some())
    }

    fn template(&self) -> Template {
        Template {
            state: self.fresh(),
            app: self.index,
            seed: self.seed,
            whole: self.whole,
            dicts: self.dicts,
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
            let bees: Vec<Arc<Bee>> = self.queen.lock().bees.values().cloned().collect();
            for bee in bees {
                let Some(mut body) = bee.freeze().await else { continue };
                let state = again(&self, &mut body.app);
                let failed = state.map(|mut state| body.app.swap(&mut *state)).err();

                // thaw the bee even after a failure; the bee then continues with its old state
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
fn again(app: &AppRuntime, state: &mut dyn AnyState) -> Result<Box<dyn AnyState>, DecodeError> {
    let encoded = panics::catch(AssertUnwindSafe(|| encode_many(&state.export())));
    let images = encoded.map_err(|panic| DecodeError { what: "a bee", why: panics::text(&*panic) })?;
    let mut decoded = app.fresh();
    for image in decode_many::<Vec<CellImage>>("a bee", &images)? {
        decoded.import(app.seed, &image)?;
    }
    Ok(decoded)
}
