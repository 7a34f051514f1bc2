//! Messages whose handler panicked, or broke a rule: kept for a while, for people to look at.

use crate::limits;
use crate::message::Error;
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// A message that could not be handled.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// The app.
    pub app: &'static str,
    /// Its handler.
    pub handler: &'static str,
    /// The type of the message.
    pub message: &'static str,
    /// The message, encoded.
    pub bytes: Vec<u8>,
    /// What happened.
    pub error: Error,
    /// When it happened.
    pub at: Time,
}

#[derive(Default)]
pub(crate) struct DeadLetters {
    letters: Mutex<VecDeque<DeadLetter>>,
    total: AtomicU64,
}

impl DeadLetters {
    pub(crate) fn add(&self, letter: DeadLetter) {
        let before = self.total.fetch_add(1, Ordering::Relaxed);
        // the first ones in full, then one in a thousand: a handler that fails on every message must not fill a disk
        if before < 10 || before.is_multiple_of(1000) {
            tracing::error!(app = letter.app, handler = letter.handler, message = letter.message, error = %letter.error,
                total = before + 1, "a message could not be handled; it is kept as a dead letter");
        }
        let mut letters = self.letters.lock();
        if letters.len() >= limits::DEAD_LETTERS_MAX {
            letters.pop_front();
        }
        letters.push_back(letter);
    }

    pub(crate) fn list(&self) -> Vec<DeadLetter> {
        self.letters.lock().iter().cloned().collect()
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}
