//! Dead letters as users see them: listed, sent again, discarded.

use crate::hive::admission::credits::Cause as Held;
use crate::hive::dispatch::inner::{Hive, HiveInner};
use crate::hive::dispatch::message_types::Again;
use crate::hive::dispatch::turn::Place;
use crate::hive::message::batch::{Chain, Source};
use crate::hive::message::dead_letters::{DeadLetter, Provenance, ResendError};
use crate::state::DecodeError;
use std::sync::Arc;

impl Hive {
    /// Messages that could not be handled, oldest first: at most
    /// [`limits::DEAD_LETTERS_MAX`](crate::limits::DEAD_LETTERS_MAX) of them.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.inner().dead_letters.list()
    }

    /// Sends a dead letter's message again, to the app that could not handle it and to nobody else; the letter is gone then.
    /// Should the message fail again, that makes another letter.
    ///
    /// It is the same message: sender, origin, chain of causes and place in the chain of those that can answer are what they
    /// were. Its place in the order of messages is a new one, and whoever waited for an answer has had the error as one. As
    /// all that comes from outside it waits while too much is under way.
    ///
    /// Cancel-safe: either the letter is still there, or the message has been sent.
    pub async fn resend_dead_letter(&self, number: u64) -> Result<(), ResendError> {
        let inner = self.inner();
        let letter = inner.dead_letters.find(number).ok_or(ResendError::Unknown { number })?;
        let bytes = letter.bytes.as_deref().ok_or(ResendError::NotKept { message: letter.message })?;
        inner.types.check(&letter.way, bytes).map_err(ResendError::Unreadable)?;
        if inner.is_stopped() {
            return Err(ResendError::Unavailable);
        }
        tokio::select! {
            biased;
            () = inner.room_for_one() => {}
            () = self.stopped() => return Err(ResendError::Unavailable),
        }
        let held = Held::new(&inner.credits, 1, &inner.in_flight);
        // somebody else may have been faster
        let letter = inner.dead_letters.take(number).ok_or(ResendError::Unknown { number })?;
        tracing::info!(number, app = letter.app, message = letter.message, "a dead letter is sent again");
        inner.send_letter(letter, held).map_err(ResendError::Unreadable)
    }

    /// Throws a dead letter away. Returns it, if it was there.
    pub fn discard_dead_letter(&self, number: u64) -> Option<DeadLetter> {
        self.inner().dead_letters.take(number)
    }

    /// Throws all dead letters away. Returns how many there were.
    pub fn discard_dead_letters(&self) -> usize {
        self.inner().dead_letters.clear()
    }
}

impl HiveInner {
    fn send_letter(self: &Arc<Self>, letter: DeadLetter, held: Arc<Held>) -> Result<(), DecodeError> {
        let DeadLetter { bytes, way, cause, .. } = letter;
        let bytes = bytes.unwrap_or_default();
        let Provenance { chain, hops, origin, sender, .. } = cause;
        let source = Source {
            origin,
            sender,
            hops,
            chain: Chain::of(chain),
            ..Source::outside(origin, self.platform.random())
        };
        self.from_outside(source, held, Place::Runners, |source, admitted, cx| {
            let again = Again { bytes: &bytes, source, position: way.position, admitted, at: None };
            cx.turn.hive.types.send_again(way.app, &way.name, again, cx)
        })
    }
}
