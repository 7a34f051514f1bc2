//! The public functions that list, resend and discard dead letters.

use crate::hive::admission::credits::Cause as Held;
use crate::hive::admission::entrances::Entrance;
use crate::hive::dispatch::inner::{Hive, HiveInner};
use crate::hive::dispatch::turn::Place;
use crate::hive::dispatch::types::logged_types::Again;
use crate::hive::message::batch::{Chain, Source};
use crate::hive::message::dead_letters::{DeadLetter, Provenance, ResendError};
use crate::state::DecodeError;
use beehive_protocol::AppId;
use std::sync::Arc;

impl Hive {
    /// Returns all dead letters kept, oldest first, at most
    /// [`limits::DEAD_LETTERS_MAX`](crate::limits::DEAD_LETTERS_MAX).
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.inner().dead_letters.list()
    }

    /// Resends the message of a dead letter to the app that failed to handle it, and removes the letter. If
    /// the message fails again, it becomes a new dead letter.
    ///
    /// The sender, the origin, the causal chain and the position in the answer chain stay the same. The
    /// message gets a new place in the order of messages. Its answer is dropped, because the requester has
    /// already received the error. The call waits for a credit.
    ///
    /// Cancel-safe: if the future is dropped, either the letter is still kept or its message has been sent.
    pub async fn resend_dead_letter(&self, number: u64) -> Result<(), ResendError> {
        let inner = self.inner();
        let letter = inner.dead_letters.find(number).ok_or(ResendError::Unknown { number })?;
        let bytes = letter.bytes.as_deref().ok_or(ResendError::NotKept { message: letter.message })?;
        inner.types.logged.check(&letter.way, bytes).map_err(ResendError::Unreadable)?;
        if inner.is_stopped() {
            return Err(ResendError::Unavailable);
        }

        let entrance = inner.entrance_to(&[AppId(letter.way.app)]);
        tokio::select! {
            biased;
            () = inner.room_at(&entrance) => {}
            () = self.stopped() => return Err(ResendError::Unavailable),
        }

        let held = Held::new(&entrance.credits, 1, &inner.in_flight);
        // another call may have taken the letter meanwhile
        let letter = inner.dead_letters.take(number).ok_or(ResendError::Unknown { number })?;
        tracing::info!(number, app = letter.app, message = letter.message, "resending a dead letter");
        inner.send_letter(letter, &entrance, held).map_err(ResendError::Unreadable)
    }

    /// Discards a dead letter and returns it. Returns `None` if no letter has this number.
    pub fn discard_dead_letter(&self, number: u64) -> Option<DeadLetter> {
        self.inner().dead_letters.take(number)
    }

    /// Discards all dead letters and returns how many there were.
    pub fn discard_dead_letters(&self) -> usize {
        self.inner().dead_letters.clear()
    }
}

impl HiveInner {
    /// Sends a dead letter's message to the app and handler for which it was meant.
    fn send_letter(
        self: &Arc<Self>,
        letter: DeadLetter,
        entrance: &Entrance,
        held: Arc<Held>,
    ) -> Result<(), DecodeError> {
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

        self.from_outside(source, entrance, held, Place::Runners, |source, admitted, cx| {
            let (bytes, position) = (&bytes, way.position);
            let again = Again { bytes, source, position, admitted, at: None, arrival: None };
            cx.turn.hive.types.logged.send_again(way.app, way.message_type, again, cx)
        })
    }
}
