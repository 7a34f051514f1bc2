//! A pair of copies: readers use one copy while the writer updates the other, and a publication swaps them. This is
//! similar to the `left-right` crate, except that the writer waits only a bounded time for slow readers.
//!
//! Committed changes are handed over as a log. A publisher applies the log to the copy that has no readers and makes
//! that copy the current version. The previous version now lacks this log, and is brought up to date at the next
//! publication. Readers hold a version only while reading, and never wait. A publisher does not wait either: while
//! readers still hold the copy that it needs, changes stay pending. If that takes longer than `patience`, or if too
//! many changes are pending, the publisher makes another copy and leaves the old one to its readers. At most `held`
//! copies are left to readers. When that limit is reached, nothing is published: the writer applies changes to a copy
//! that nobody sees, and readers can tell from the age how stale their version is.

use super::sync::{Arc, AtomicU64, Mutex, Ordering, Weak};

/// Data that exists in several copies, kept in sync by logs of changes. No method unwinds, even if dropping a value
/// panics.
pub(crate) trait Copied {
    /// An ordered log of changes.
    type Log: Log;
    /// Returns another copy.
    fn duplicate(&self) -> Self;
    /// Applies the changes of `log`.
    fn apply(&mut self, log: &Self::Log);
    /// Applies `log`, which contains the changes from `current` to the new version.
    fn follow(&mut self, current: &Self, log: &Self::Log);
}

/// An ordered log of changes.
pub(crate) trait Log: Default {
    fn len(&self) -> usize;
    /// Moves the changes of `later` to the end of this log.
    fn append(&mut self, later: &mut Self);
    fn clear(&mut self);
}

/// One state of the data.
pub(crate) struct Version<C> {
    /// Number of the version. Later versions have higher numbers.
    pub(crate) number: u64,
    pub(crate) content: C,
}

/// Limits on memory and on the delay of changes. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Number of pending changes above which a hand-over publishes them.
    pub(crate) waiting: usize,
    /// Maximum number of copies left to slow readers.
    pub(crate) held: usize,
    /// The time for which a publisher keeps changes pending for a slow reader before it makes another copy.
    pub(crate) patience: u64,
}

pub(crate) struct Pair<C: Copied> {
    bounds: Bounds,
    current: Mutex<Arc<Version<C>>>,
    writer: Mutex<Writer<C>>,
    /// Time at which the oldest change missing from the current version was handed over, plus one. Zero if no change is
    /// missing.
    waiting_since: AtomicU64,
}

struct Writer<C: Copied> {
    /// Changes in the current version that `retired` lacks.
    behind: C::Log,
    /// Changes missing from both copies.
    waiting: C::Log,
    /// The previous version, which is updated once its last reader has released it.
    retired: Option<Arc<Version<C>>>,
    /// A copy with all changes. It exists only after the pending log has grown too long at a time when no copy
    /// could be published.
    ahead: Option<C>,
    /// Copies left to their readers.
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

    /// Takes over the changes committed at `now` and empties `changes`. With `by_moment`, changes handed over earlier
    /// are published first, so that a version has either all changes of a moment or none of them.
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

    /// Publishes the pending changes if possible.
    pub(crate) fn publish(&self, now: u64) {
        self.publish_with(&mut self.writer.lock(), now)
    }

    /// Same as [`Pair::publish`], but does nothing if another thread holds the writer's lock.
    pub(crate) fn try_publish(&self, now: u64) {
        if let Some(mut writer) = self.writer.try_lock() {
            self.publish_with(&mut writer, now)
        }
    }

    /// Returns the time at which the oldest change missing from the current version was handed over.
    #[inline]
    pub(crate) fn waiting_since(&self) -> Option<u64> {
        self.waiting_since.load(Ordering::Acquire).checked_sub(1)
    }

    /// Returns the current version. While a caller holds it, that copy cannot be updated.
    #[inline]
    pub(crate) fn current(&self) -> Arc<Version<C>> {
        self.current.lock().clone()
    }

    /// Returns the number of existing copies: the current one, those waiting to be updated, and those left to
    /// readers.
    pub(crate) fn copies(&self) -> usize {
        let mut writer = self.writer.lock();
        writer.forget_released();
        1 + usize::from(writer.retired.is_some()) + usize::from(writer.ahead.is_some()) + writer.held.len()
    }

    /// Returns the number of changes in the pending log.
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
            // `ahead` has been updated without a log, so the previous version cannot be brought up to date.
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
