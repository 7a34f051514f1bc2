//! The offices of a hive: for which logs it is the leader. Whatever is begun for a log carries the office in which it was begun,
//! so that nothing of it leaves the hive when the hive leads the log no longer, even if it leads the log again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The leadership of one log, from the moment at which the hive takes the log until it gives it up. The hive's next leadership
/// of the same log is another office.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Office {
    position: u32,
    /// Zero for [`Office::NONE`].
    number: u32,
}

impl Office {
    /// The office of whatever belongs to no log. It never ends.
    pub(crate) const NONE: Office = Office { position: 0, number: 0 };

    /// Returns the position of the log among those of the hive. It is free for another log when the office has ended.
    pub(crate) fn position(self) -> usize {
        self.position as usize
    }

    /// Checks whether this is the office of whatever belongs to no log.
    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self.number == 0
    }
}

/// Number of positions for which memory is reserved at once.
const BLOCK: usize = 64;

/// Maximum number of blocks. A mailbox stores the position of its log in 16 bits.
const BLOCKS: usize = (1 << 16) / BLOCK;

type Block = [AtomicU32; BLOCK];

/// The offices that a hive holds, by the positions of the logs.
pub(crate) struct Offices {
    /// For each position, the number of the office held; zero if there is none.
    held: Box<[OnceLock<Box<Block>>]>,
    begun: AtomicU32,
}

impl Default for Offices {
    fn default() -> Self {
        let held = (0..BLOCKS).map(|_| OnceLock::new()).collect();
        Offices { held, begun: AtomicU32::new(0) }
    }
}

impl Offices {
    fn held(&self, position: usize) -> Option<&AtomicU32> {
        self.held.get(position / BLOCK)?.get()?.get(position % BLOCK)
    }

    /// Begins an office. The one that the hive had at this position ends.
    pub(crate) fn begin(&self, position: usize) -> Office {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(block) = self.held.get(position / BLOCK) {
            block.get_or_init(|| Box::new([const { AtomicU32::new(0) }; BLOCK]));
        }
        if let Some(held) = self.held(position) {
            held.store(number, Ordering::Release)
        }
        Office { position: position as u32, number }
    }

    /// Ends an office, if the hive still holds it. Returns whether it did.
    pub(crate) fn end(&self, office: Office) -> bool {
        let held = self.held(office.position()).filter(|_| !office.is_none());
        held.is_some_and(|held| {
            held.compare_exchange(office.number, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })
    }

    /// Checks whether the hive still holds an office.
    #[inline]
    pub(crate) fn holds(&self, office: Office) -> bool {
        office.is_none()
            || self.held(office.position()).is_some_and(|held| held.load(Ordering::Acquire) == office.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_office_ends_once_and_never_comes_back() {
        let offices = Offices::default();
        let (first, other) = (offices.begin(0), offices.begin(100));
        assert!(offices.holds(first) && offices.holds(other) && offices.holds(Office::NONE));
        assert!(offices.end(first) && !offices.end(first) && !offices.end(Office::NONE));
        let again = offices.begin(0);
        assert_eq!((again.position(), again == first), (0, false));
        assert!(!offices.holds(first) && offices.holds(again) && offices.holds(other));
        assert!(!offices.end(first) && offices.holds(again))
    }
}
