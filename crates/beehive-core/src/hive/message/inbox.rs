//! The inboxes of IO bees: messages and answers that wait for them to be read.

use crate::hash::HashMap;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::deferred_wakes;
use crate::hive::message::batch::{AnswerRun, AnswerSink, AnyBatch, Batch};
use crate::limits;
use crate::message::{Error, Message};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Something that came to an IO bee: messages sent to its address, or answers to what it emitted.
pub struct Mail {
    content: Content,
    /// Held until the mail has been looked at.
    cause: Option<Arc<Cause>>,
}

enum Content {
    Messages {
        batch: Arc<dyn AnyBatch>,
        range: Range<u32>,
    },
    /// With their number.
    Answers(Box<dyn Any + Send>, usize),
}

/// Answers to messages of type `M`; those of one bee in the order in which it handled them. What nobody answered is not
/// there.
pub struct Answers<M: Message>(Vec<Result<M::Reply, Error>>);

impl<M: Message> IntoIterator for Answers<M> {
    type Item = Result<M::Reply, Error>;
    type IntoIter = std::vec::IntoIter<Result<M::Reply, Error>>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Mail {
    /// The messages, if they are of type `M`.
    pub fn messages<M: Message>(&self) -> Option<&[M]> {
        match &self.content {
            Content::Messages { batch, range } => {
                let batch = batch.as_any().downcast_ref::<Batch<M>>()?;
                batch.messages.get(range.start as usize..range.end as usize)
            }
            Content::Answers(..) => None,
        }
    }

    /// The answers, if they are to messages of type `M`.
    pub fn into_answers<M: Message>(self) -> Result<Answers<M>, Mail> {
        match self.content {
            Content::Answers(answers, count) => answers
                .downcast::<Answers<M>>()
                .map(|a| *a)
                .map_err(|a| Mail { content: Content::Answers(a, count), cause: self.cause }),
            content => Err(Mail { content, cause: self.cause }),
        }
    }

    /// Name of the message's type; for answers, none.
    pub fn name(&self) -> Option<&'static str> {
        match &self.content {
            Content::Messages { batch, .. } => Some(batch.message_name()),
            Content::Answers(..) => None,
        }
    }

    /// Messages or answers in it.
    fn len(&self) -> usize {
        match &self.content {
            Content::Messages { range, .. } => range.len(),
            Content::Answers(_, count) => *count,
        }
    }
}

/// What waits for one IO bee.
///
/// Mail holds the credits of those who caused it, which bounds it as long as its owner reads; what came without credits,
/// or had to give them up, is bounded by [`limits::MAIL_UNREAD_MAX`].
pub(crate) struct Inbox {
    unread: Mutex<Unread>,
    pub(in crate::hive) arrived: Arc<Notify>,
    shed: Arc<Shed>,
    /// Messages that were thrown away since somebody asked.
    pub(in crate::hive) lost: AtomicU64,
}

/// Messages and answers that were thrown away because their IO bee reads nothing, of all IO bees of a hive.
#[derive(Default)]
pub(crate) struct Shed(AtomicU64);

impl Shed {
    #[cold]
    fn add(&self, count: usize) {
        let before = self.0.fetch_add(count as u64, Ordering::Relaxed);
        // once for every doubling: who floods an IO bee must not flood the log
        if before == 0 || (before + count as u64).ilog2() > before.ilog2() {
            tracing::warn!(
                shed = before + count as u64,
                "an IO bee does not read its mail; what comes is thrown away"
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
    /// Messages and answers in it.
    count: usize,
    /// So many letters from the front on have given their credits up.
    released: usize,
}

impl Unread {
    /// Counts `count` more, if there is room for them.
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
    /// Takes out what has waited longest.
    pub(in crate::hive) fn pop(&self) -> Option<Mail> {
        self.unread.lock().pop()
    }

    /// Takes out everything.
    pub(in crate::hive) fn append_to(&self, into: &mut VecDeque<Mail>) {
        self.unread.lock().append_to(into)
    }

    pub(in crate::hive) fn is_empty(&self) -> bool {
        self.unread.lock().mail.is_empty()
    }

    /// Puts messages in; as many as there is room for, in order.
    fn put(&self, batch: Arc<dyn AnyBatch>, mut range: Range<u32>, cause: Option<Arc<Cause>>) {
        let mut unread = self.unread.lock();
        let lost = range.len().saturating_sub(unread.room());
        if lost > 0 {
            self.lost.fetch_add(lost as u64, Ordering::Relaxed);
            // no more than the range is long
            range.end -= lost as u32;
            self.shed.add(lost);
            if range.is_empty() {
                return;
            }
        }
        unread.admit(range.len());
        self.push(unread, Mail { content: Content::Messages { batch, range }, cause })
    }

    fn push(&self, mut unread: MutexGuard<'_, Unread>, mail: Mail) {
        unread.mail.push_back(mail);
        // also the first behind those that have no credits any more: whoever waits for credits may wait for this one's
        let first = unread.mail.len() == unread.released + 1;
        drop(unread);
        if first {
            deferred_wakes::one(&self.arrived)
        }
    }

    /// Has all mail give up its credits: they may be what its reader is waiting for.
    pub(in crate::hive) fn release(&self) {
        let mut causes: Vec<Arc<Cause>> = Vec::new();
        let mut unread = self.unread.lock();
        let Unread { mail, released, .. } = &mut *unread;
        causes.extend(mail.iter_mut().skip(*released).filter_map(|one| one.cause.take()));
        *released = mail.len();
        drop(unread);
        // outside the lock: it wakes others
        drop(causes)
    }
}

impl<M: Message> AnswerSink<M> for Inbox {
    fn expect(&self, _: &Batch<M>, _: u32, _: u32) {}

    fn answers(&self, answers: AnswerRun<M>, cause: &Option<Arc<Cause>>) {
        let mut unread = self.unread.lock();
        if !unread.admit(answers.len()) {
            drop(unread);
            return self.shed.add(answers.len());
        }
        // answers to one batch come one bee after the other: they go into one letter
        if let Some(Mail { content: Content::Answers(before, count), cause: held }) = unread.mail.back_mut()
            && held.as_ref().map(Arc::as_ptr) == cause.as_ref().map(Arc::as_ptr)
            && let Some(before) = before.downcast_mut::<Answers<M>>()
        {
            *count += answers.len();
            before.0.extend(answers);
            return;
        }
        let count = answers.len();
        let content = Content::Answers(Box::new(Answers::<M>(answers.into_vec())), count);
        self.push(unread, Mail { content, cause: cause.clone() })
    }

    fn observed(&self, _: &Batch<M>, _: u32, _: Result<(), Error>) {}

    fn unanswered(&self, _: &Batch<M>, _: u32) {}

    fn counts(&self) -> bool {
        false
    }
}

/// The IO bees of a hive, by number.
#[derive(Default)]
pub(crate) struct IoBees {
    next: AtomicU64,
    inboxes: RwLock<HashMap<u64, Arc<Inbox>>>,
    /// Of those that the hive supervises: who lives under which name.
    names: RwLock<HashMap<String, u64>>,
    pub(crate) shed: Arc<Shed>,
}

impl IoBees {
    /// With numbers from `first` on. It differs from one life of a hive to the next: an address that a log has kept must
    /// not lead to another IO bee.
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

    /// The one that was started last under a name, if it lives.
    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        self.names.read().get(name).copied()
    }

    /// A life of a supervised IO bee begins.
    pub(crate) fn begin(&self, name: &str, id: u64) {
        self.names.write().insert(name.to_string(), id);
    }

    /// It ends.
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
        // an IO bee that is gone has no use for it
        let Some(inbox) = self.inboxes.read().get(&id).cloned() else { return };
        inbox.put(batch.clone(), range, cause.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.inboxes.read().len()
    }
}
