//! The inboxes of IO bees, with the messages and answers that the IO bees have not yet read.

use crate::failure::RequestError;
use crate::hash::HashMap;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::deferred_wakes;
use crate::hive::message::arrival::Asking;
use crate::hive::message::batch::{AnswerRun, AnswerSink, Answered, AnyBatch, Batch, Observed};
use crate::hive::message::remote_mail::Encoded;
use crate::limits;
use crate::message::Message;
use beehive_protocol::Payload;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Mail for an IO bee: messages sent to its address, or answers to messages it emitted.
pub struct Mail {
    content: Content,
    /// The work in flight to which this mail belongs. It stays in flight until the mail is dropped or gives
    /// up its credits.
    cause: Option<Held>,
}

/// The work in flight to which a mail belongs.
enum Held {
    /// Work of this hive.
    Here(Arc<Cause>),
    /// Work of another hive, which learns when this is dropped.
    There { _asking: Asking },
}

impl Held {
    /// Checks whether this is work of this hive, and this cause.
    fn is(&self, cause: &Option<Arc<Cause>>) -> bool {
        matches!((self, cause), (Held::Here(held), Some(cause)) if Arc::ptr_eq(held, cause))
    }
}

/// Shows the type of the messages and their number. A program may log mail that it does not expect, so the content is
/// left out: it may be large or confidential.
impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut mail = f.debug_struct("Mail");
        match self.name() {
            Some(name) => mail.field("messages", &name),
            None => mail.field("answers", &..),
        };
        mail.field("len", &self.len()).finish()
    }
}

enum Content {
    Messages {
        batch: Arc<dyn AnyBatch>,
        range: Range<u32>,
    },
    /// Messages of another hive.
    Encoded(Encoded),
    /// The answers, and their number.
    Answers(Box<dyn Any + Send>, usize),
}

/// Answers to messages of type `M`. One bee's answers are in the order in which it handled the messages.
/// Unanswered messages are left out.
pub struct Answers<M: Message>(Vec<Answered<M>>);

impl<M: Message<Reply: fmt::Debug, Error: fmt::Debug>> fmt::Debug for Answers<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl<M: Message> IntoIterator for Answers<M> {
    type Item = Result<M::Reply, RequestError<M::Error>>;
    type IntoIter = std::vec::IntoIter<Self::Item>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Mail {
    /// Returns the messages, if this mail contains messages of type `M`.
    pub fn messages<M: Message>(&self) -> Option<&[M]> {
        match &self.content {
            Content::Messages { batch, range } => {
                let batch = batch.as_any().downcast_ref::<Batch<M>>()?;
                batch.messages.get(range.start as usize..range.end as usize)
            }
            Content::Encoded(encoded) => encoded.messages(),
            Content::Answers(..) => None,
        }
    }

    /// Returns the answers, if this mail contains answers to messages of type `M`. Otherwise returns the
    /// mail itself.
    pub fn into_answers<M: Message>(self) -> Result<Answers<M>, Mail> {
        match self.content {
            Content::Answers(answers, count) => answers
                .downcast::<Answers<M>>()
                .map(|a| *a)
                .map_err(|a| Mail { content: Content::Answers(a, count), cause: self.cause }),
            content => Err(Mail { content, cause: self.cause }),
        }
    }

    /// Returns the name of the message type, or `None` if this mail contains answers.
    pub fn name(&self) -> Option<&str> {
        match &self.content {
            Content::Messages { batch, .. } => Some(batch.message_name()),
            Content::Encoded(encoded) => Some(encoded.name()),
            Content::Answers(..) => None,
        }
    }

    /// Returns the number of messages or answers.
    fn len(&self) -> usize {
        match &self.content {
            Content::Messages { range, .. } => range.len(),
            Content::Encoded(encoded) => encoded.len(),
            Content::Answers(_, count) => *count,
        }
    }
}

/// The unread mail of one IO bee.
///
/// Mail holds the credits of the work that caused it, so these credits bound the unread mail as long as the
/// owner reads its inbox. [`limits::MAIL_UNREAD_MAX`] bounds all unread mail, including mail without credits.
pub(crate) struct Inbox {
    unread: Mutex<Unread>,
    pub(in crate::hive) arrived: Arc<Notify>,
    shed: Arc<Shed>,
    /// Number of messages dropped since the owner last called `Io::take_lost`. Relaxed ordering suffices,
    /// because the number guards no other data.
    pub(in crate::hive) lost: AtomicU64,
}

/// Number of messages and answers dropped because an IO bee of the hive did not read its inbox, or because the hive of an IO bee did
/// not answer.
#[derive(Default)]
pub(crate) struct Shed(AtomicU64);

impl Shed {
    /// Counts dropped mail. Logs a warning each time the total reaches or passes a power of two.
    #[cold]
    pub(super) fn add(&self, count: usize) {
        let before = self.0.fetch_add(count as u64, Ordering::Relaxed);
        // one line for each doubling, so that a flood of mail does not flood the log
        if before == 0 || (before + count as u64).ilog2() > before.ilog2() {
            tracing::warn!(
                shed = before + count as u64,
                "mail is dropped: an IO bee does not read its inbox, or the hive of an IO bee does not answer"
            );
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Unread {
    mail: VecDeque<Mail>,
    /// Number of messages and answers in `mail`.
    count: usize,
    /// Number of entries at the front that have given up their credits.
    released: usize,
}

impl Unread {
    /// Adds `count` to the number of messages and answers if there is room for them. Returns whether there
    /// was room.
    #[inline]
    fn admit(&mut self, count: usize) -> bool {
        let room = count <= self.room();
        self.count += if room { count } else { 0 };
        room
    }

    #[inline]
    fn room(&self) -> usize {
        limits::MAIL_UNREAD_MAX - self.count
    }

    fn pop(&mut self) -> Option<Mail> {
        let mail = self.mail.pop_front()?;
        self.count -= mail.len();
        self.released = self.released.saturating_sub(1);
        Some(mail)
    }

    fn append_to(&mut self, into: &mut VecDeque<Mail>) {
        into.append(&mut self.mail);
        (self.count, self.released) = (0, 0)
    }
}

impl Inbox {
    /// Takes the oldest mail.
    pub(in crate::hive) fn pop(&self) -> Option<Mail> {
        self.unread.lock().pop()
    }

    /// Takes all mail.
    pub(in crate::hive) fn append_to(&self, into: &mut VecDeque<Mail>) {
        self.unread.lock().append_to(into)
    }

    pub(in crate::hive) fn is_empty(&self) -> bool {
        self.unread.lock().mail.is_empty()
    }

    /// Adds as many messages as there is room for, starting with the first, and drops the rest. `content` returns the content
    /// with this number of them.
    fn put(&self, count: usize, content: impl FnOnce(usize) -> Content, cause: Option<Held>) {
        let mut unread = self.unread.lock();
        let lost = count.saturating_sub(unread.room());
        if lost > 0 {
            self.lost.fetch_add(lost as u64, Ordering::Relaxed);
            self.shed.add(lost);
            if lost == count {
                return;
            }
        }

        unread.admit(count - lost);
        self.push(unread, Mail { content: content(count - lost), cause })
    }

    fn push(&self, mut unread: MutexGuard<'_, Unread>, mail: Mail) {
        unread.mail.push_back(mail);
        // also wakes the owner for the first mail that still holds credits, because the owner may be in a
        // flush waiting for these credits
        let first = unread.mail.len() == unread.released + 1;
        drop(unread);
        if first {
            deferred_wakes::one(&self.arrived)
        }
    }

    /// Releases the credits held by unread mail. The owner of the inbox may be waiting for them.
    pub(in crate::hive) fn release(&self) {
        let mut causes: Vec<Held> = Vec::new();
        let mut unread = self.unread.lock();
        let Unread { mail, released, .. } = &mut *unread;
        causes.extend(mail.iter_mut().skip(*released).filter_map(|one| one.cause.take()));
        *released = mail.len();
        drop(unread);
        // outside the lock, because this wakes other tasks
        drop(causes)
    }
}

impl<M: Message> AnswerSink<M> for Inbox {
    fn expect(&self, _: &Batch<M>, _: u32, _: Option<u32>) {}

    fn answers(&self, answers: AnswerRun<M>, cause: &Option<Arc<Cause>>) {
        let mut unread = self.unread.lock();
        if !unread.admit(answers.len()) {
            drop(unread);
            return self.shed.add(answers.len());
        }
        // merge consecutive answers to messages from one batch into one entry
        if let Some(Mail { content: Content::Answers(before, count), cause: held }) = unread.mail.back_mut()
            && (held.is_none() && cause.is_none() || held.as_ref().is_some_and(|held| held.is(cause)))
            && let Some(before) = before.downcast_mut::<Answers<M>>()
        {
            *count += answers.len();
            match answers.spilled() {
                true => before.0.append(&mut answers.into_vec()),
                false => before.0.extend(answers),
            }
            return;
        }

        let count = answers.len();
        let content = Content::Answers(Box::new(Answers::<M>(answers.into_vec())), count);
        self.push(unread, Mail { content, cause: cause.clone().map(Held::Here) })
    }

    fn observed(&self, _: &Batch<M>, _: u32, _: Observed<M>) {}

    fn unanswered(&self, _: &Batch<M>, _: u32) {}

    fn counts(&self) -> bool {
        false
    }
}

/// The inboxes of a hive's IO bees, by IO bee id.
#[derive(Default)]
pub(crate) struct IoBees {
    next: AtomicU64,
    inboxes: RwLock<HashMap<u64, Arc<Inbox>>>,
    /// The ids of running supervised IO bees, by name.
    names: RwLock<HashMap<String, u64>>,
    pub(crate) shed: Arc<Shed>,
}

impl IoBees {
    /// Creates an empty table that assigns ids above `first`. `first` must differ between incarnations, so
    /// that an address in a log does not lead to an unrelated IO bee.
    pub(crate) fn numbered_from(first: u64) -> IoBees {
        IoBees { next: AtomicU64::new(first), ..IoBees::default() }
    }

    pub(in crate::hive) fn open(&self) -> (u64, Arc<Inbox>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let inbox = Arc::new(Inbox {
            unread: Mutex::default(),
            arrived: Arc::default(),
            shed: self.shed.clone(),
            lost: AtomicU64::new(0),
        });
        self.inboxes.write().insert(id, inbox.clone());
        (id, inbox)
    }

    pub(in crate::hive) fn close(&self, id: u64) {
        self.inboxes.write().remove(&id);
    }

    /// Returns the IO bee most recently started under a name, if it is still running.
    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        self.names.read().get(name).copied()
    }

    /// Records that a run of a supervised IO bee begins.
    pub(crate) fn begin(&self, name: &str, id: u64) {
        self.names.write().insert(name.to_string(), id);
    }

    /// Records that a run of a supervised IO bee has ended.
    pub(crate) fn end(&self, name: &str, id: u64) {
        let mut names = self.names.write();
        if names.get(name) == Some(&id) {
            names.remove(name);
        }
    }

    pub(crate) fn deliver<M: Message>(
        &self,
        id: u64,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        cause: &Option<Arc<Cause>>,
    ) {
        // mail for a closed IO bee is dropped
        let Some(inbox) = self.inboxes.read().get(&id).cloned() else { return };
        let content = |count: usize| {
            let range = range.start..range.start + count as u32;
            Content::Messages { batch: batch.clone(), range }
        };
        inbox.put(range.len(), content, cause.clone().map(Held::Here))
    }

    /// Delivers messages of another hive. `asking` is dropped when the IO bee has read them, or never will.
    pub(crate) fn deliver_encoded(
        &self,
        id: u64,
        (name, mut messages): (String, Vec<Payload>),
        asking: Option<Asking>,
    ) {
        let Some(inbox) = self.inboxes.read().get(&id).cloned() else { return };
        let count = messages.len();
        let content = |count| {
            messages.truncate(count);
            Content::Encoded(Encoded::new(name, messages))
        };
        inbox.put(count, content, asking.map(|asking| Held::There { _asking: asking }))
    }

    pub(crate) fn len(&self) -> usize {
        self.inboxes.read().len()
    }
}
