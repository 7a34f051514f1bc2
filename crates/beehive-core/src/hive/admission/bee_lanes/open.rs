//! The unacknowledged messages of one lane. Those that wait for a time are apart: a timer, and a message that its bee has postponed.

use beehive_protocol::{AppId, Emit, MessageId, Part, Seq};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An unacknowledged message in an outbox.
pub(super) struct OpenMessage {
    /// The message's position in the order in which the hive committed its records, and thus their messages.
    pub(super) order: u64,
    /// The message itself, if the bee may move to another log.
    pub(super) emit: Option<Arc<Emit>>,
}

type Key = (AppId, Seq, Part);
type Messages = BTreeMap<Key, OpenMessage>;

#[derive(Default)]
pub(super) struct OpenMessages {
    /// Those that are under way.
    sent: Messages,
    /// Those that wait for a time, or have waited for one.
    waiting: Messages,
}

impl OpenMessages {
    pub(super) fn insert(&mut self, id: MessageId, message: OpenMessage, waits: bool) {
        let MessageId { seq, part, app, .. } = id;
        if waits { &mut self.waiting } else { &mut self.sent }.insert((app, seq, part), message);
    }

    pub(super) fn remove(&mut self, id: MessageId) {
        let key = (id.app, id.seq, id.part);
        if self.sent.remove(&key).is_none() {
            self.waiting.remove(&key);
        }
    }

    /// Keeps only the messages for which `stays` returns `true`.
    pub(super) fn retain(&mut self, stays: impl Fn(Key) -> bool) {
        self.sent.retain(|key, _| stays(*key));
        self.waiting.retain(|key, _| stays(*key))
    }

    pub(super) fn len(&self) -> usize {
        self.sent.len() + self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty()
    }

    /// Returns the app and the number of each message.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (AppId, Seq)> {
        self.sent.keys().chain(self.waiting.keys()).map(|(app, seq, _)| (*app, *seq))
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &OpenMessage> {
        self.sent.values().chain(self.waiting.values())
    }

    /// Returns the lowest number of a message to an app.
    pub(super) fn first(&self, app: AppId) -> Option<Seq> {
        match (first_in(&self.sent, app), first_in(&self.waiting, app)) {
            (Some(sent), Some(waiting)) => Some(sent.min(waiting)),
            (sent, waiting) => sent.or(waiting),
        }
    }

    /// Returns the lowest number of a message that is under way. Takes time in proportion to the number of apps.
    pub(super) fn oldest_sent(&self) -> Option<Seq> {
        let mut oldest: Option<Seq> = None;
        let mut from = Some(AppId(0));
        while let Some((app, seq, _)) = from
            .and_then(|from| self.sent.range((from, Seq::ZERO, Part::WHOLE)..).next())
            .map(|(key, _)| *key)
        {
            oldest = oldest.into_iter().chain([seq]).min();
            from = app.0.checked_add(1).map(AppId)
        }
        oldest
    }
}

/// Returns the lowest number of a message to an app.
fn first_in(messages: &Messages, app: AppId) -> Option<Seq> {
    let ((of, seq, _), _) = messages.range((app, Seq::ZERO, Part::WHOLE)..).next()?;
    (*of == app).then_some(*seq)
}
