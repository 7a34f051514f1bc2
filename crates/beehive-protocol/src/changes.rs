//! Changes of the bees that a log contains, apart from moves: they begin, merge, split and end. Also the list of those that
//! the registry does not know yet.

use crate::{AppId, BeeId, CellId, EncodedCells, FewSet, LaneId, LogState, Proposal, RegistryState};
use serde::{Deserialize, Serialize};

/// A change that a log has decided and about which the registry must be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Untold {
    /// A bee has merged into another one.
    Fused {
        /// The bee that ceased to exist.
        from: BeeId,
        /// The bee that took over the cells.
        into: BeeId,
    },
    /// A bee has given some of its cells to a new one.
    Split {
        /// The bee that had the cells.
        bee: BeeId,
        /// The cells.
        cells: Vec<CellId>,
        /// The new bee.
        new: BeeId,
    },
    /// A bee has given back its cells.
    Released {
        /// The bee that ceased to exist.
        bee: BeeId,
    },
}

impl Untold {
    fn concerns(&self, of: BeeId) -> bool {
        match self {
            Untold::Fused { from, into } => *from == of || *into == of,
            Untold::Split { bee, new, .. } => *bee == of || *new == of,
            Untold::Released { bee } => *bee == of,
        }
    }

    fn ended(&self, of: BeeId) -> bool {
        matches!(self, Untold::Fused { from: bee, .. } | Untold::Released { bee } if *bee == of)
    }

    /// Checks whether the registry knows the change.
    pub(crate) fn is_known(&self, view: &RegistryState) -> bool {
        match self {
            Untold::Fused { from: bee, .. } | Untold::Released { bee } => view.bee(*bee).is_none(),
            Untold::Split { new, .. } => view.bee(*new).is_some(),
        }
    }

    /// Returns the proposal that tells the registry.
    pub(crate) fn proposal(&self) -> Proposal {
        match self {
            Untold::Fused { from, into } => Proposal::Fused { from: *from, into: *into },
            Untold::Split { bee, cells, new } => {
                Proposal::Split { bee: *bee, cells: cells.clone(), new: *new }
            }
            Untold::Released { bee } => Proposal::Release { bee: *bee },
        }
    }
}

impl LogState {
    /// Checks whether a bee takes part in a change that the registry has not confirmed. Until then, the bee takes part
    /// in no other change.
    pub fn is_busy(&self, bee: BeeId) -> bool {
        self.untold.iter().any(|untold| untold.concerns(bee))
    }

    /// Checks whether a bee has ended, and the registry may not know it yet.
    pub fn has_ended(&self, bee: BeeId) -> bool {
        self.untold.iter().any(|untold| untold.ended(bee))
    }

    /// Checks whether a bee of this log may handle messages.
    pub fn is_active(&self, app: AppId, bee: BeeId) -> bool {
        self.bees.get(&(app, bee)).is_some_and(|image| !image.is_frozen())
    }

    /// Notes a change about which the registry must be told. A log that decides alone tells nobody: its records have no
    /// view.
    pub(crate) fn note(&mut self, change: Untold, view: u64) {
        if view > 0 {
            self.untold.push(change)
        }
    }

    fn note_newest(&mut self, app: AppId, bee: BeeId) {
        let newest = self.newest.entry(app).or_insert(bee);
        *newest = bee.max(*newest)
    }

    pub(crate) fn create(&mut self, app: AppId, bee: BeeId) {
        self.note_newest(app, bee);
        self.bees.entry((app, bee)).or_default();
    }

    pub(crate) fn split(
        &mut self,
        app: AppId,
        bee: BeeId,
        new: BeeId,
        (cells, keys): (&[CellId], &[(u32, Vec<u8>)]),
    ) {
        let Some(image) = self.bees.get_mut(&(app, bee)) else { return };
        let (mut stays, mut goes) = (EncodedCells::default(), EncodedCells::default());
        for cell in image.state.images() {
            let is_given = keys.iter().any(|(dict, key)| (*dict, key) == (cell.dict, &cell.key));
            if is_given { goes.insert(cell) } else { stays.insert(cell) }
        }
        image.state = stays;
        image.cells = image.cells.iter().copied().filter(|cell| !cells.contains(cell)).collect();
        let (seen, now) = (image.seen.clone(), image.now);

        self.create(app, new);
        if let Some(image) = self.bees.get_mut(&(app, new)) {
            image.cells = FewSet::from_iter(cells.iter().copied());
            (image.state, image.seen, image.now) = (goes, seen, now)
        }
    }

    pub(crate) fn fuse(&mut self, app: AppId, from: BeeId, into: BeeId) {
        let Some(gone) = self.bees.remove(&(app, from)) else { return };
        let of_target = self.bees.get_mut(&(app, into)).map(|bee| std::mem::take(&mut bee.heir_of));

        // The target inherits those lanes of the merged bees on which a message is still unhandled.
        let lanes = gone.heir_of.into_iter().chain(of_target.into_iter().flatten());
        let lanes = lanes.chain([LaneId::of_bee(app, from)]);
        let lanes = lanes.filter(|lane| self.is_waited_on(*lane)).collect();

        let target = self.bees.entry((app, into)).or_default();
        target.cells.absorb(gone.cells);
        target.state.absorb(gone.state);
        target.seen.absorb(gone.seen);
        target.now = target.now.max(gone.now);
        target.heir_of = lanes
    }
}
