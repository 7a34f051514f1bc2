//! Ids of cells, bees and hives, and the outcome of a map.

use crate::limits;
pub use beehive_protocol::{AppId, BeeId, CellId, CellSet, HiveId, PlaceId};

/// The outcome of a derived map for one message in one app.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The handler does nothing for this message, so the message is dropped.
    Drop,
    /// The handler needs no cell. It runs where the message is routed, in the order of the sender's messages.
    Stateless,
    /// The handler needs cells. It runs at the bee that owns them.
    Cells,
    /// The map exceeds a limit, so the message fails with an error.
    Refused(MapLimit),
}

/// A limit on maps. It keeps the map of one message from occupying the sender's thread for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapLimit {
    /// [`limits::CELLS_PER_MESSAGE_MAX`](crate::limits::CELLS_PER_MESSAGE_MAX).
    Cells,
    /// [`limits::STEPS_PER_MAP_MAX`](crate::limits::STEPS_PER_MAP_MAX).
    Steps,
}

impl std::fmt::Display for MapLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MapLimit::Cells => write!(
                f,
                "the message needs more than {} cells; split it into several messages, or let one bee own the \
                 whole dictionary (`.whole()`)",
                limits::CELLS_PER_MESSAGE_MAX
            ),
            MapLimit::Steps => write!(
                f,
                "the loops that compute the keys of this message take more than {} steps; put the keys into the \
                 message",
                limits::STEPS_PER_MAP_MAX
            ),
        }
    }
}

impl crate::key::KeyEncoding for HiveId {
    #[inline]
    fn feed(&self, hasher: &mut crate::key::CellHasher) {
        hasher.word(self.0 as u64)
    }
    fn describe(&self, out: &mut String) {
        out.push_str(&self.to_string())
    }
}
impl crate::key::KeyType for HiveId {
    const TYPE_NAME: &'static str = "beehive::HiveId";
    const IS_FUSED: bool = true;
}
