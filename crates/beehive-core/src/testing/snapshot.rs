//! The state of an app at one moment, to be looked at.

use crate::app::Handlers;
use crate::mapper::close_over_fusion;
use crate::state::CellImage;
use crate::state::column::Columns;
use crate::state::guard::Held;

/// All cells of an app as they were when it was taken, in one instance of it, apart from the hive.
pub struct Snapshot<A> {
    app: A,
    seed: u64,
}

impl<A: Handlers> Snapshot<A> {
    pub(crate) fn new(empty: &A, seed: u64, images: &[CellImage]) -> Self {
        let mut app = empty.fresh();
        for image in images {
            // written by this very process a moment ago
            if let Err(error) = app.import(seed, image) {
                panic!("a cell of `{}` cannot be read back from its own bytes: {error}", A::NAME)
            }
        }
        Snapshot { app, seed }
    }

    /// Looks at the dictionaries: all of them are there, `whole()` too. What `look` changes is undone.
    pub fn look<R>(&mut self, look: impl FnOnce(&mut A) -> R) -> R {
        let held = Held::record(self.seed, close_over_fusion(A::MONOLITHIC, A::DICTS));
        let result = look(&mut self.app);
        self.app.rollback();
        drop(held);
        result
    }

    /// Every cell in words, in order: `macs[4]`, and what is in it.
    pub fn cells(&mut self) -> Vec<(String, String)> {
        let mut cells = self.app.in_words();
        cells.sort_unstable();
        cells
    }
}
