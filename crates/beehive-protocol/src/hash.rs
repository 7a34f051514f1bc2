//! The hash that identifies cells. All hives in a cluster must compute the same id for a cell. `std::hash::Hash` is not
//! used, because its byte stream depends on pointer width, byte order and compiler version.

use foldhash::fast::FixedState;

/// A hash map that iterates in the same order in every run.
#[expect(clippy::disallowed_types, reason = "with a fixed hasher")]
pub(crate) type HashMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

const ADD: u64 = 0x9e37_79b9_7f4a_7c15;
const MUL: u64 = 0xa076_1d64_78bd_642f;
const END: u64 = 0xe703_7ed1_a0b4_28db;

#[inline(always)]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A streaming folded-multiply hash of the wyhash family. Its output is part of the protocol and never changes.
#[derive(Clone, Copy, Debug)]
pub struct CellHasher(u64);

impl CellHasher {
    /// Returns a hasher that starts from `seed`.
    #[inline(always)]
    pub const fn new(seed: u64) -> Self {
        CellHasher(seed ^ ADD)
    }

    /// Adds a word.
    #[inline(always)]
    pub const fn word(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word, MUL).rotate_left(23);
    }

    /// Adds a byte string. A short string is added as words, together with its length. A longer string is first hashed
    /// with XXH3, whose specification fixes its output.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        if bytes.len() <= 16 {
            let mut words = [0u8; 16];
            words[..bytes.len()].copy_from_slice(bytes);
            let (low, high) = words.split_at(8);
            let mut part = [0u8; 8];
            part.copy_from_slice(low);
            self.word(u64::from_le_bytes(part));
            part.copy_from_slice(high);
            self.word(u64::from_le_bytes(part) ^ ((bytes.len() as u64) << 56));
        } else {
            self.word(xxhash_rust::xxh3::xxh3_64(bytes));
            self.word(bytes.len() as u64);
        }
    }

    /// Returns the hash. It is never zero, so zero can stand for "no cell".
    #[inline(always)]
    pub const fn finish(self) -> u64 {
        let hash = fold(self.0 ^ END, ADD);
        if hash == 0 { 1 } else { hash }
    }

    /// Adds a string, at compile time.
    pub(crate) const fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            self.word(bytes[at] as u64);
            at += 1;
        }
        self.word(bytes.len() as u64)
    }

    /// Hashes a name at compile time.
    pub const fn name(seed: u64, name: &str) -> u64 {
        let mut hasher = CellHasher::new(seed);
        hasher.text(name);
        hasher.finish()
    }
}
