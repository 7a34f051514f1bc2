//! Cells, sets of them, and what a map says about a message.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Identity of a cell: a 64-bit hash of (cluster seed, app, dictionary or fused key type, key). Two keys that collide
/// are merely kept together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CellId(pub u64);

/// The cells of one message; up to three without an allocation.
pub type CellSet = SmallVec<[CellId; 3]>;

/// A placement hint: equal for equal keys of equal type, whatever the app.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct PlaceId(pub u64);

/// One process of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct HiveId(pub u32);

/// One logical thread that exclusively owns a set of cells of one app. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BeeId(pub u64);

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

impl std::fmt::Display for BeeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bee {}", self.0)
    }
}

impl std::fmt::Display for HiveId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hive {}", self.0)
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
