//! Ids of cells, bees and hives, and what a map says about a message.

pub use beehive_protocol::{AppId, BeeId, CellId, CellSet, HiveId, PlaceId};

/// What a derived map says about one message in one app.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing to do: the message ends here.
    Drop,
    /// No cell is needed: it runs in the emitting task, in order.
    Stateless,
    /// The bee that owns the mapped cells.
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
