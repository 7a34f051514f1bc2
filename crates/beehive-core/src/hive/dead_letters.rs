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
    /// The message, encoded; empty if it is larger than
    /// [`limits::DEAD_LETTER_BYTES_MAX`](crate::limits::DEAD_LETTER_BYTES_MAX).
    pub bytes: Vec<u8>,
    /// What happened.
    pub error: Error,
    /// When it happened.
    pub at: Time,
}

impl DeadLetter {
    /// What it takes to keep it.
    fn size_bytes(&self) -> usize {
        size_of::<DeadLetter>() + self.bytes.len() + self.error.text().len()
    }
}

#[derive(Default)]
struct Letters {
    kept: VecDeque<DeadLetter>,
    bytes: usize,
}

#[derive(Default)]
pub(crate) struct DeadLetters {
    letters: Mutex<Letters>,
    total: AtomicU64,
    dropped: AtomicU64,
}

impl DeadLetters {
    pub(crate) fn add(&self, mut letter: DeadLetter) {
        let before = self.total.fetch_add(1, Ordering::Relaxed);
        // the first ones in full, then one in a thousand: a handler that fails on every message must not fill a disk
        if before < 10 || before.is_multiple_of(1000) {
            tracing::error!(app = letter.app, handler = letter.handler, message = letter.message, error = %letter.error,
                total = before + 1, "a message could not be handled; it is kept as a dead letter");
        }
        if letter.bytes.len() > limits::DEAD_LETTER_BYTES_MAX {
            letter.bytes = Vec::new()
        }
        letter.error.cut(limits::DEAD_LETTER_BYTES_MAX);
        let mut letters = self.letters.lock();
        letters.bytes += letter.size_bytes();
        letters.kept.push_back(letter);
        while letters.kept.len() > limits::DEAD_LETTERS_MAX || letters.bytes > limits::DEAD_LETTERS_BYTES_MAX
        {
            let Some(oldest) = letters.kept.pop_front() else { break };
            letters.bytes -= oldest.size_bytes();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn list(&self) -> Vec<DeadLetter> {
        self.letters.lock().kept.iter().cloned().collect()
    }

    /// All there ever were.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Those that are not kept any more.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ErrorKind;

    fn letter(bytes: usize, text: usize) -> DeadLetter {
        DeadLetter {
            app: "a",
            handler: "h",
            message: "m",
            bytes: vec![7; bytes],
            error: Error::of(ErrorKind::Panicked, "é".repeat(text / 2)),
            at: Time::ZERO,
        }
    }

    #[test]
    fn large_letters_are_bounded_by_their_bytes() {
        let letters = DeadLetters::default();
        let count = 3 * limits::DEAD_LETTERS_BYTES_MAX / limits::DEAD_LETTER_BYTES_MAX;
        assert!(count < limits::DEAD_LETTERS_MAX, "the other limit must not be what is tested");
        for _ in 0..count {
            letters.add(letter(limits::DEAD_LETTER_BYTES_MAX, 0))
        }
        let kept = letters.list();
        assert!(kept.iter().map(DeadLetter::size_bytes).sum::<usize>() <= limits::DEAD_LETTERS_BYTES_MAX);
        assert!(kept.len() > count / 4, "{} of {count}", kept.len());
        assert_eq!(letters.total(), count as u64);
        assert_eq!(letters.dropped(), (count - kept.len()) as u64);
    }

    #[test]
    fn of_a_letter_that_is_too_large_the_error_is_kept() {
        let letters = DeadLetters::default();
        letters.add(letter(limits::DEAD_LETTER_BYTES_MAX + 1, 10));
        letters.add(letter(10, 10 * limits::DEAD_LETTER_BYTES_MAX));
        let kept = letters.list();
        assert!(kept[0].bytes.is_empty() && kept[0].error.text().len() == 10);
        assert_eq!(kept[1].bytes.len(), 10);
        assert!(kept[1].error.text().len() <= limits::DEAD_LETTER_BYTES_MAX);
        assert_eq!(letters.dropped(), 0);
    }
}
