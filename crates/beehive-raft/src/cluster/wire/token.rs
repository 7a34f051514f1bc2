//! The join token, and how a hive shows that it has it without sending it.
//!
//! Each side sends a random number, and the other side hashes both numbers with the token as the key. Who listens learns
//! nothing that helps with another connection.

/// The key made of the join token. It is never logged, and never sent.
#[derive(Clone)]
pub(super) struct Key([u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A random number that is used once.
pub(super) type Nonce = [u8; 32];

/// Who shows that it has the token, and when. A proof for one purpose is worth nothing for another one.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Purpose {
    Challenge = 1,
    Claim = 2,
    Verdict = 3,
}

impl Key {
    /// Without a token, the key is that of the empty one.
    pub(super) fn new(token: Option<&str>) -> Key {
        Key(blake3::derive_key("beehive 2026 join token of a cluster", token.unwrap_or("").as_bytes()))
    }

    /// The proof that somebody has the token, bound to this connection's numbers and to what it says.
    pub(super) fn proof(&self, purpose: Purpose, nonces: (&Nonce, &Nonce), says: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[purpose as u8]).update(nonces.0).update(nonces.1).update(says);
        *hasher.finalize().as_bytes()
    }

    /// Checks a proof. Takes the same time wherever it differs.
    pub(super) fn accepts(
        &self,
        proof: &[u8; 32],
        purpose: Purpose,
        nonces: (&Nonce, &Nonce),
        says: &[u8],
    ) -> bool {
        blake3::Hash::from_bytes(*proof) == blake3::Hash::from_bytes(self.proof(purpose, nonces, says))
    }
}
