//! Hash maps and sets that iterate in the same order in every run.
//!
//! The standard library's maps have a random seed, so code that iterates over them may behave differently when a
//! simulation is repeated. These maps have a fixed seed. Use them only for keys that outside senders cannot choose,
//! because a fixed seed allows deliberate collisions.

use foldhash::fast::FixedState;

/// A hash map with a fixed seed. Created with `default()`.
#[expect(clippy::disallowed_types, reason = "with a fixed hasher")]
pub(crate) type HashMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// A hash set with a fixed seed. Created with `default()`.
#[expect(clippy::disallowed_types, reason = "with a fixed hasher")]
pub(crate) type HashSet<T> = hashbrown::HashSet<T, FixedState>;
