//! Dead letters: messages whose handler panicked or broke a rule, kept so that people can inspect and
//! resend them.

use crate::cell::HiveId;
use crate::hive::consensus::journal::MessageTypeId;
use crate::hive::message::batch::Address;
use crate::limits;
use crate::message::Error;
use crate::state::DecodeError;
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// A message that could not be handled.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// Number of the letter. It is unique within this incarnation of the hive.
    pub number: u64,
    /// The app.
    pub app: &'static str,
    /// The app's handler.
    pub handler: &'static str,
    /// The message's type.
    pub message: &'static str,
    /// The message as JSON, cut at
    /// [`limits::DEAD_LETTER_WORDS_BYTES_MAX`](crate::limits::DEAD_LETTER_WORDS_BYTES_MAX).
    pub words: String,
    /// The encoded message. `None` if the message could not be encoded or is larger than
    /// [`limits::DEAD_LETTER_BYTES_MAX`](crate::limits::DEAD_LETTER_BYTES_MAX); it then cannot be resent.
    pub bytes: Option<Vec<u8>>,
    /// The error.
    pub error: Error,
    /// Time of the failure.
    pub at: Time,
    /// The message's origin.
    pub cause: Provenance,
    /// The data needed to resend the message.
    pub(crate) way: Way,
}

/// A message's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The causal chain: the number of the message from outside that began it, as in the `tracing` spans. If
    /// the message was part of a run of several messages, the chain is that of the first one.
    pub chain: u64,
    /// Number of messages between the first message of the causal chain and this one.
    pub hops: u16,
    /// The hive where the first message of the causal chain entered from outside.
    pub origin: HiveId,
    /// The sender.
    pub sender: Address,
    /// If a handler sent the message: the handler's app, its name, and the message type it handles.
    pub handler: Option<(&'static str, &'static str, &'static str)>,
}

/// The data needed to resend a message to the same app.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// The app's number.
    pub(crate) app: u16,
    /// The number by which a log finds the handler.
    pub(crate) message_type: MessageTypeId,
    /// Position of the app in the answer chain; `None` if the app is not in it.
    pub(crate) position: Option<u16>,
}

/// The reason why a dead letter cannot be resent.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResendError {
    /// No dead letter has this number. It may have been resent, discarded, or evicted to make room.
    Unknown {
        /// The number.
        number: u64,
    },
    /// The letter contains only the error. The message was too large or could not be encoded.
    NotKept {
        /// The message's name.
        message: &'static str,
    },
    /// The message cannot be decoded.
    Unreadable(DecodeError),
    /// The hive has stopped or is stopping. The letter is still kept.
    Unavailable,
}

impl std::fmt::Display for ResendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ResendError::Unknown { number } => {
                write!(
                    f,
                    "there is no dead letter {number}; it may have been resent, discarded, or evicted by newer ones"
                )
            }
            ResendError::NotKept { message } => {
                write!(
                    f,
                    "the dead letter does not contain its `{message}`, which was too large or could not be encoded"
                )
            }
            ResendError::Unreadable(error) => write!(f, "{error}"),
            ResendError::Unavailable => write!(f, "the hive has stopped"),
        }
    }
}
beehive_protocol::debug_is_display!(ResendError);

impl std::error::Error for ResendError {}

impl DeadLetter {
    /// Checks whether the letter contains the message, which is needed to resend it.
    pub fn can_be_sent_again(&self) -> bool {
        self.bytes.is_some()
    }

    /// Returns the memory that the letter occupies, in bytes.
    fn size_bytes(&self) -> usize {
        let bytes = self.bytes.as_ref().map_or(0, Vec::len);
        size_of::<DeadLetter>() + bytes + self.words.len() + self.error.text().len()
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
    /// Numbers a dead letter and keeps it. Evicts the oldest letters if there are too many or if they take
    /// too much memory.
    pub(crate) fn add(&self, mut letter: DeadLetter) {
        let before = self.total.fetch_add(1, Ordering::Relaxed);
        letter.number = before + 1;
        // log the first ten letters, then one in a thousand, so that a handler that fails on every message
        // does not fill the disk
        if before < 10 || before.is_multiple_of(1000) {
            tracing::error!(app = letter.app, handler = letter.handler, message = letter.message, error = %letter.error,
                total = before + 1, "a message could not be handled; it is kept as a dead letter");
        }

        letter.bytes = letter.bytes.filter(|bytes| bytes.len() <= limits::DEAD_LETTER_BYTES_MAX);
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

    pub(in crate::hive) fn find(&self, number: u64) -> Option<DeadLetter> {
        self.letters.lock().kept.iter().find(|letter| letter.number == number).cloned()
    }

    pub(in crate::hive) fn take(&self, number: u64) -> Option<DeadLetter> {
        let mut letters = self.letters.lock();
        let at = letters.kept.iter().position(|letter| letter.number == number)?;
        let letter = letters.kept.remove(at)?;
        letters.bytes -= letter.size_bytes();
        Some(letter)
    }

    pub(in crate::hive) fn clear(&self) -> usize {
        let cleared = std::mem::take(&mut *self.letters.lock());
        cleared.kept.len()
    }

    /// Returns the number of letters kept.
    pub(crate) fn kept(&self) -> usize {
        self.letters.lock().kept.len()
    }

    /// Returns the number of letters added since the hive started.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the number of letters evicted.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ErrorKind;

    fn letter(bytes: usize, text: usize) -> DeadLetter {
        let sender = Address::Outside;
        DeadLetter {
            number: 0,
            app: "a",
            handler: "h",
            message: "m",
            words: String::new(),
            bytes: Some(vec![7; bytes]),
            error: Error::of(ErrorKind::Panicked, "é".repeat(text / 2)),
            at: Time::ZERO,
            cause: Provenance { chain: 0, hops: 0, origin: HiveId(0), sender, handler: None },
            way: Way { app: 0, message_type: MessageTypeId(0), position: None },
        }
    }

    #[test]
    fn large_letters_are_bounded_by_their_bytes() {
        let letters = DeadLetters::default();
        let count = 3 * limits::DEAD_LETTERS_BYTES_MAX / limits::DEAD_LETTER_BYTES_MAX;
        assert!(count < limits::DEAD_LETTERS_MAX, "the limit on the number of letters must not be reached");
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
    fn a_letter_is_taken_once_and_its_room_is_free_again() {
        let letters = DeadLetters::default();
        (0..3).for_each(|_| letters.add(letter(100, 0)));
        let numbers = |letters: &DeadLetters| letters.list().iter().map(|l| l.number).collect::<Vec<_>>();
        assert_eq!(numbers(&letters), [1, 2, 3]);
        assert!(letters.take(2).is_some() && letters.take(2).is_none() && letters.find(2).is_none());
        assert_eq!((numbers(&letters), letters.kept()), (vec![1, 3], 2));
        let size: usize = letters.list().iter().map(DeadLetter::size_bytes).sum();
        assert_eq!(letters.letters.lock().bytes, size);
        assert_eq!((letters.clear(), letters.kept(), letters.letters.lock().bytes), (2, 0, 0));
        assert_eq!((letters.total(), letters.dropped()), (3, 0), "no letter was evicted");
    }

    #[test]
    fn of_a_letter_that_is_too_large_the_error_is_kept() {
        let letters = DeadLetters::default();
        letters.add(letter(limits::DEAD_LETTER_BYTES_MAX + 1, 10));
        letters.add(letter(10, 10 * limits::DEAD_LETTER_BYTES_MAX));
        let kept = letters.list();
        assert!(!kept[0].can_be_sent_again() && kept[0].error.text().len() == 10);
        assert_eq!(kept[1].bytes.as_ref().map(Vec::len), Some(10));
        assert!(kept[1].error.text().len() <= limits::DEAD_LETTER_BYTES_MAX);
        assert_eq!(letters.dropped(), 0);
    }
}
