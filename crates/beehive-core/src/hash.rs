//! Hash maps and sets that iterate in the same order in every run.
//!
//! The maps of the standard library are seeded at random, so whatever iterates over one may do something else when a
//! simulation is repeated. These have a fixed seed: use them for keys that nobody outside chooses.

use foldhash::fast::FixedState;

/// A hash map with a fixed seed. Make one with `default()`.
#[expect(clippy::disallowed_types, reason = "with a fixed hasher")]
pub(crate) type HashMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// A hash set with a fixed seed. Make one with `default()`.
#[expect(clippy::disallowed_types, reason = "with a fixed hasher")]
pub(crate) type HashSet<T> = hashbrown::HashSet<T, FixedState>;
