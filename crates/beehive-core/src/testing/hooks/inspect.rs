//! What a test may do with an app whose type it does not know: look at all of its cells, and merge some of its bees.

use crate::app::Handlers;
use crate::cell::{CellId, CellSet};
use crate::hive::HiveInner;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::routing_table::Routes;
use crate::hive::dispatch::blocked::Owners;
use crate::hive::dispatch::turn::{Place, Turn};
use crate::hive::observe::history::Alone;
use crate::seams::BoxFuture;
use crate::state::column::Columns;
use crate::state::image::CellImage;
use std::sync::Arc;

/// One cell of a dictionary in words: `macs[4]`, and what is in it.
pub(crate) type CellWords = (String, String);

/// An app as a test sees it.
pub(crate) trait Inspected {
    /// The cells that have an owner, in order.
    fn owned_cells(&self) -> Vec<CellId>;
    /// All cells of all bees as bytes, ordered by dictionary and encoded key. Nothing if some bee is at work.
    fn images(&self) -> Option<Vec<CellImage>>;
    /// All cells of all bees in words, in order. Nothing if some bee is at work.
    fn cells_in_words(&self) -> Option<Vec<CellWords>>;
    /// Holds up the bee of `cell`, as a handler that takes long would, until `pause` is over.
    fn hold_up(self: Arc<Self>, cell: CellId, pause: BoxFuture<()>, hive: &Arc<HiveInner>) -> BoxFuture<()>;
    /// The app without state, outside the hive.
    fn alone(&self) -> Box<dyn Alone>;
    /// Completes when `cells` had one owner.
    fn unite_cells(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()>;
}

impl<A: Handlers> AppRuntime<A> {
    fn of_every_bee<T>(&self, look: impl Fn(&mut A) -> Vec<T>) -> Option<Vec<T>> {
        let queen = self.queen.lock();
        let mut all = Vec::new();
        for bee in queen.bees.values() {
            all.append(&mut bee.peek(|body| look(&mut body.app))?)
        }
        Some(all)
    }
}

impl<A: Handlers> Inspected for AppRuntime<A> {
    fn owned_cells(&self) -> Vec<CellId> {
        let shards = 0..Routes::<A>::SHARDS;
        let mut cells: Vec<CellId> =
            shards.flat_map(|s| self.routes.cells_of_shard(s)).map(|(cell, _)| cell).collect();
        cells.sort_unstable();
        cells
    }

    fn images(&self) -> Option<Vec<CellImage>> {
        let mut images = self.of_every_bee(|app| app.export(true))?;
        images.sort_by(|a, b| (a.dict, &a.key).cmp(&(b.dict, &b.key)));
        Some(images)
    }

    fn cells_in_words(&self) -> Option<Vec<CellWords>> {
        let mut cells = self.of_every_bee(|app| app.in_words())?;
        cells.sort_unstable();
        Some(cells)
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

    fn alone(&self) -> Box<dyn Alone> {
        AppRuntime::alone(self)
    }

    fn unite_cells(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        Owners::unite(self, cells, hive)
    }
}
