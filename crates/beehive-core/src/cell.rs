//! Ids of cells, bees and hives, and the outcome of a map.

pub use beehive_protocol::{AppId, BeeId, CellId, CellSet, HiveId, PlaceId};

/// The outcome of a derived map for one message in one app.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The handler does nothing for this message: it is dropped.
    Drop,
    /// The handler needs no cell: it runs where the message is routed, in the order of the sender.
    Stateless,
    /// The handler needs cells: it runs at the bee that owns them.
    Cells,
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
