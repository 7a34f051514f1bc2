//! The unacknowledged messages of one lane. Those that wait for a time are apart: a timer, and a message that its bee has postponed. So
//! are sweeps, which take as long as there are cells.

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

/// Why a message may stay unacknowledged although the logs commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasts {
    /// It does not.
    No,
    /// It waits for a time, or its bee may have postponed it.
    UntilItsTime,
    /// It has begun a sweep, and is acknowledged at its end.
    UntilSwept,
}

type Key = (AppId, Seq, Part);
type Messages = BTreeMap<Key, OpenMessage>;

#[derive(Default)]
pub(super) struct OpenMessages {
    /// Those that are under way.
    sent: Messages,
    /// Those that wait for a time, or have waited for one.
    waiting: Messages,
    /// Those that have begun sweeps, each with the lane's next number when the sweep made its last step.
    sweeps: BTreeMap<Key, (OpenMessage, Seq)>,
}

impl OpenMessages {
    pub(super) fn insert(&mut self, id: MessageId, message: OpenMessage, lasts: Lasts) {
        let key = (id.app, id.seq, id.part);
        match lasts {
            Lasts::No => drop(self.sent.insert(key, message)),
            Lasts::UntilItsTime => drop(self.waiting.insert(key, message)),
            Lasts::UntilSwept => drop(self.sweeps.insert(key, (message, id.seq))),
        }
    }

    /// Notes that a sweep has made a step, when the lane's next number was `next`.
    pub(super) fn swept(&mut self, id: MessageId, next: Seq) {
        if let Some((_, step)) = self.sweeps.get_mut(&(id.app, id.seq, id.part)) {
            *step = next
        }
    }

    pub(super) fn remove(&mut self, id: MessageId) {
        let key = (id.app, id.seq, id.part);
        if self.sent.remove(&key).is_none() && self.waiting.remove(&key).is_none() {
            self.sweeps.remove(&key);
        }
    }

    /// Keeps only the messages for which `stays` returns `true`.
    pub(super) fn retain(&mut self, stays: impl Fn(Key) -> bool) {
        self.sent.retain(|key, _| stays(*key));
        self.waiting.retain(|key, _| stays(*key));
        self.sweeps.retain(|key, _| stays(*key))
    }

    pub(super) fn len(&self) -> usize {
        self.sent.len() + self.waiting.len() + self.sweeps.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty() && self.sweeps.is_empty()
    }

    /// Returns the app and the number of each message.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (AppId, Seq)> {
        let keys = self.sent.keys().chain(self.waiting.keys()).chain(self.sweeps.keys());
        keys.map(|(app, seq, _)| (*app, *seq))
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &OpenMessage> {
        let sweeps = self.sweeps.values().map(|(message, _)| message);
        self.sent.values().chain(self.waiting.values()).chain(sweeps)
    }

    /// Returns the lowest number of a message to an app.
    pub(super) fn first(&self, app: AppId) -> Option<Seq> {
        let first = [first_in(&self.sent, app), first_in(&self.waiting, app), first_in(&self.sweeps, app)];
        first.into_iter().flatten().min()
    }

    /// Returns the lowest number of a message that is under way. A sweep counts from its last step: as long as it makes steps, it
    /// holds up nobody. Takes time in proportion to the number of apps and of sweeps.
    pub(super) fn oldest_sent(&self) -> Option<Seq> {
        let mut oldest = self.sweeps.values().map(|(_, step)| *step).min();
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
fn first_in<M>(messages: &BTreeMap<Key, M>, app: AppId) -> Option<Seq> {
    let ((of, seq, _), _) = messages.range((app, Seq::ZERO, Part::WHOLE)..).next()?;
    (*of == app).then_some(*seq)
}
