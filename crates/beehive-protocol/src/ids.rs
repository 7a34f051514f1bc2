//! Identifiers that have the same meaning on every hive.

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

/// A message as a fact: the lane of its sender, its number there, and the app it goes to. True for ever, wherever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Fact {
    /// The sender's number line.
    pub lane: u64,
    /// The message's number in it.
    pub seq: u64,
    /// Which of the messages that were made of that number without a record of their own; zero: the message itself.
    pub part: u64,
    /// The app, by its number.
    pub app: u16,
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

impl BeeId {
    /// Hash of the id for a hash table. Ids are handed out one after the other, so the low bits already differ; the
    /// product spreads the high bits.
    #[inline]
    pub fn table_hash(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
