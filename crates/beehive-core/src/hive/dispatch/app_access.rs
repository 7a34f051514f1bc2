//! Operations on an app, for callers that do not know its type. For the `testing` feature.

use crate::cell::{CellId, CellSet};
use crate::hive::dispatch::inner::HiveInner;
use crate::mapper::DictInfo;
use crate::seams::BoxFuture;
use crate::state::any::AnyState;
use crate::state::image::DecodeError;
use std::sync::Arc;

/// An instance of an app that has no cells and lives outside the hive.
pub(crate) struct Template {
    pub(crate) state: Box<dyn AnyState>,
    /// The app's number.
    pub(crate) app: u16,
    /// The seed for cell ids.
    pub(crate) seed: u64,
    /// Bit set of the dictionaries that form a single cell each.
    pub(crate) whole: u64,
    pub(crate) dicts: &'static [DictInfo],
}

/// Access to the bees of an app.
pub(crate) trait AppAccess: Send + Sync {
    /// Returns the cells that have an owner, in order.
    fn owned_cells(&self) -> Vec<CellId>;
    /// Calls `look` with the state of each bee, under the queen's lock. Stops and returns `false` if it
    /// finds a bee that is running.
    fn look_at_bees(&self, look: &mut dyn FnMut(&mut dyn AnyState)) -> bool;
    /// Returns an instance of the app without cells.
    fn template(&self) -> Template;
    /// Takes the body of the bee that owns `cell` and gives it back when `pause` completes, as a slow handler
    /// would.
    fn hold_up(self: Arc<Self>, cell: CellId, pause: BoxFuture<()>, hive: &Arc<HiveInner>) -> BoxFuture<()>;
    /// Merges the owners of `cells`. Completes once a single bee has owned all of them.
    fn unite_cells(self: Arc<Self>, cells: CellSet, hive: &Arc<HiveInner>) -> BoxFuture<()>;
    /// Encodes the state of every bee and decodes it again, one bee at a time, while messages arrive.
    /// Returns the number of bees.
    fn reimport(self: Arc<Self>, hive: Arc<HiveInner>) -> BoxFuture<Result<usize, DecodeError>>;
    /// Moves the bee that owns `cell` to one of the app's logs: the one at position `pick`, modulo the
    /// number of logs. Returns whether the bee has moved.
    fn move_bee_of(self: Arc<Self>, cell: CellId, pick: usize, hive: Arc<HiveInner>) -> BoxFuture<bool>;
}
