//! A copy of an app's state at one moment, for a test to inspect.

use crate::app::{App, Handlers};
use crate::mapper::close_over_fusion;
use crate::state::CellImage;
use crate::state::column::Columns;
use crate::state::guard::Held;

/// All of an app's cells, as they were when they were copied, in one instance independent of the hive.
pub struct StateCopy<A> {
    app: A,
    seed: u64,
}

impl<A: App> std::fmt::Debug for StateCopy<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateCopy").field("app", &A::NAME).finish_non_exhaustive()
    }
}

impl<A: Handlers> StateCopy<A> {
    #[track_caller]
    pub(crate) fn new(empty: &A, seed: u64, images: &[CellImage]) -> Self {
        let mut app = empty.fresh();
        for image in images {
            // This should not fail, because this process has just encoded the cell.
            if let Err(error) = app.import(seed, image) {
                panic!("a cell of `{}` was encoded but cannot be decoded: {error}", A::NAME)
            }
        }
        StateCopy { app, seed }
    }

    /// Passes the dictionaries to `look`. All cells are accessible, including through `whole()`. Changes made
    /// by `look` are rolled back.
    pub fn look<R>(&mut self, look: impl FnOnce(&mut A) -> R) -> R {
        let held = Held::record(self.seed, close_over_fusion(A::MONOLITHIC, A::DICTS));
        let result = look(&mut self.app);
        if !self.app.is_in_place() {
            self.app.put_in_place();
        }
        self.app.rollback();
        drop(held);
        result
    }

    /// Returns every cell as text, in order: its name, such as `macs[4]`, and its content.
    pub fn cells(&mut self) -> Vec<(String, String)> {
        let mut cells = self.app.in_words();
        cells.sort_unstable();
        cells
    }
}
