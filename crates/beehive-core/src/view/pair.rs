//! A pair of copies: one is read, the other is written, and now and then they change places.
//!
//! What has been committed is handed over as a log. Whoever publishes applies it to the copy that nobody reads, and makes
//! that the current version; the copy that was current lacks that log, and is brought up to date the next time. Readers
//! hold a version for as long as they read, and wait for nobody. A publisher waits for nobody either: while the copy that
//! it needs is still read, changes wait; when that takes too long, or they are too many, it makes another copy and leaves
//! the old one to its readers. There are so many of those and no more; beyond that nothing is published, changes go into
//! one copy that nobody sees, and readers are told how old their version is.

use super::sync::{Arc, AtomicU64, Mutex, Ordering, Weak};

/// Something that there are copies of, kept alike by logs of changes. Nothing here unwinds, whatever values do when they
/// are dropped.
pub(crate) trait Copied {
    /// Changes, in order.
    type Log: Log;
    /// Another copy.
    fn duplicate(&self) -> Self;
    /// Makes the changes.
    fn apply(&mut self, log: &Self::Log);
    /// Makes the changes that lead from `current` here.
    fn follow(&mut self, current: &Self, log: &Self::Log);
}

/// Changes, in order.
pub(crate) trait Log: Default {
    fn len(&self) -> usize;
    /// Takes the changes of `later`, which is then empty.
    fn append(&mut self, later: &mut Self);
    fn clear(&mut self);
}

/// One state of all copies.
pub(crate) struct Version<C> {
    /// Later versions have higher numbers.
    pub(crate) number: u64,
    pub(crate) content: C,
}

/// What bounds memory, and how long a change may wait. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Changes that wait before whoever hands over more publishes them.
    pub(crate) waiting: usize,
    /// Copies that are left to readers who hold on to them.
    pub(crate) held: usize,
    /// How long a publisher waits for readers before it makes another copy.
    pub(crate) patience: u64,
}

pub(crate) struct Pair<C: Copied> {
    bounds: Bounds,
    current: Mutex<Arc<Version<C>>>,
    writer: Mutex<Writer<C>>,
    /// When the oldest change was handed over that the current version lacks, plus one. Zero: it lacks none.
    waiting_since: AtomicU64,
}

struct Writer<C: Copied> {
    /// In the current version, and not in that before it.
    behind: C::Log,
    /// In neither.
    waiting: C::Log,
    /// The version before the current one, to be written when nobody reads it.
    retired: Option<Arc<Version<C>>>,
    /// Has everything, where that could not be published and is too much to wait as a log.
    ahead: Option<C>,
    /// Left to readers.
    held: Vec<Weak<Version<C>>>,
    published_at: u64,
}

impl<C: Copied> Pair<C> {
    pub(crate) fn new(first: C, bounds: Bounds) -> Self {
        Pair {
            bounds,
            current: Mutex::new(Arc::new(Version { number: 1, content: first })),
            writer: Mutex::new(Writer {
                behind: C::Log::default(),
                waiting: C::Log::default(),
                retired: None,
                ahead: None,
                held: Vec::new(),
                published_at: 0,
            }),
            waiting_since: AtomicU64::new(0),
        }
    }

    /// Takes what was committed at `now`; `changes` is then empty. `by_moment`: what was handed over before `now` is
    /// published first, so that one version has all of a moment or nothing.
    pub(crate) fn hand_over(&self, changes: &mut C::Log, now: u64, by_moment: bool) {
        let mut writer = self.writer.lock();
        if by_moment && self.waiting_since().is_some_and(|since| since < now) {
            self.publish_with(&mut writer, now)
        }
        match &mut writer.ahead {
            Some(ahead) => {
                ahead.apply(changes);
                changes.clear()
            }
            None => writer.waiting.append(changes),
        }
        if self.waiting_since().is_none() {
            self.waiting_since.store(now.saturating_add(1), Ordering::Release)
        }
        if !by_moment && writer.waiting.len() > self.bounds.waiting {
            self.publish_with(&mut writer, now)
        }
    }

    /// Publishes what waits, if that is possible now.
    pub(crate) fn publish(&self, now: u64) {
        self.publish_with(&mut self.writer.lock(), now)
    }

    /// As [`Pair::publish`], unless somebody else is at it.
    pub(crate) fn try_publish(&self, now: u64) {
        if let Some(mut writer) = self.writer.try_lock() {
            self.publish_with(&mut writer, now)
        }
    }

    /// When the oldest change was handed over that the current version lacks.
    #[inline]
    pub(crate) fn waiting_since(&self) -> Option<u64> {
        self.waiting_since.load(Ordering::Acquire).checked_sub(1)
    }

    /// The current version. Whoever holds it keeps a copy from being written.
    #[inline]
    pub(crate) fn current(&self) -> Arc<Version<C>> {
        self.current.lock().clone()
    }

    /// Copies that exist: the current one, those that wait to be written, those that are left to readers.
    pub(crate) fn copies(&self) -> usize {
        let mut writer = self.writer.lock();
        writer.forget_released();
        1 + usize::from(writer.retired.is_some()) + usize::from(writer.ahead.is_some()) + writer.held.len()
    }

    /// Changes that wait as a log.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.writer.lock().waiting.len()
    }

    fn publish_with(&self, writer: &mut Writer<C>, now: u64) {
        if writer.ahead.is_none() && writer.waiting.len() == 0 {
            return;
        }
        writer.forget_released();
        let current = self.current();
        let may_leave = writer.held.len() < self.bounds.held;
        let (next, is_logged) = match (writer.ahead.take(), writer.retired.take()) {
            (Some(ahead), _) if may_leave => (ahead, false),
            (Some(ahead), _) => {
                writer.ahead = Some(ahead);
                return;
            }
            (None, Some(retired)) => match Arc::try_unwrap(retired) {
                Ok(Version { mut content, .. }) => {
                    content.apply(&writer.behind);
                    content.follow(&current.content, &writer.waiting);
                    (content, true)
                }
                Err(retired) => {
                    let too_many = writer.waiting.len() > self.bounds.waiting;
                    let too_late = now.saturating_sub(writer.published_at) >= self.bounds.patience;
                    if !(too_many || (too_late && may_leave)) {
                        writer.retired = Some(retired);
                        return;
                    }
                    writer.held.push(Arc::downgrade(&retired));
                    let mut content = current.content.duplicate();
                    content.follow(&current.content, &writer.waiting);
                    if !may_leave {
                        writer.ahead = Some(content);
                        writer.waiting.clear();
                        writer.behind.clear();
                        return;
                    }
                    (content, true)
                }
            },
            (None, None) => {
                let mut content = current.content.duplicate();
                content.follow(&current.content, &writer.waiting);
                (content, true)
            }
        };
        let next = Arc::new(Version { number: current.number + 1, content: next });
        *self.current.lock() = next;
        self.waiting_since.store(0, Ordering::Release);
        writer.published_at = now;
        match is_logged {
            true => {
                std::mem::swap(&mut writer.behind, &mut writer.waiting);
                writer.retired = Some(current)
            }
            // nobody has written down what it lacks
            false => {
                writer.behind.clear();
                writer.held.push(Arc::downgrade(&current))
            }
        }
        writer.waiting.clear();
    }
}

impl<C: Copied> Writer<C> {
    fn forget_released(&mut self) {
        self.held.retain(|version| version.strong_count() > 0)
    }
}
