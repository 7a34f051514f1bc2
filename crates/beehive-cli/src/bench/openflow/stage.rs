//! What the conductor and the worker threads tell each other: the stage of the run, and how far the workers are.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::limits::FAULTS_KEPT_MAX;
use super::switch::Load;

/// The stages of a run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    /// Switches connect and shake hands.
    Connect,
    /// Hosts are announced.
    Announce,
    /// Traffic that does not count yet.
    WarmUp,
    /// Traffic that counts.
    Measure,
    /// The last answers are awaited.
    Drain,
    /// Threads end.
    Stop,
}

impl Stage {
    const ALL: [Self; 6] =
        [Self::Connect, Self::Announce, Self::WarmUp, Self::Measure, Self::Drain, Self::Stop];

    /// What switches send in this stage.
    pub(super) fn offer(self) -> Load {
        match self {
            Self::Connect | Self::Drain | Self::Stop => Load::None,
            Self::Announce => Load::Announcements,
            Self::WarmUp | Self::Measure => Load::Traffic,
        }
    }
}

/// What one worker has reached. Only it writes; each has cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Progress {
    pub(super) ready: AtomicU32,
    pub(super) table_miss: AtomicU32,
    pub(super) announced: AtomicU32,
    pub(super) outstanding: AtomicU32,
    /// Of the whole run, never set back.
    pub(super) answered: AtomicU64,
}

/// The state that all threads of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    stage: AtomicU8,
    progress: Vec<Progress>,
    failed: AtomicU32,
    faults: Mutex<Vec<Disconnects>>,
}

/// Switches that lost their connections for the same reason.
#[derive(Debug)]
struct Disconnects {
    reason: String,
    first: u32,
    others: u32,
}

impl Shared {
    /// For this many workers.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            stage: AtomicU8::new(Stage::Connect as u8),
            progress: (0..workers).map(|_| Progress::default()).collect(),
            failed: AtomicU32::new(0),
            faults: Mutex::default(),
        }
    }

    /// The stage of the run.
    #[inline]
    pub(super) fn stage(&self) -> Stage {
        Stage::ALL.get(usize::from(self.stage.load(Ordering::Acquire))).copied().unwrap_or(Stage::Stop)
    }

    /// Begins a stage; the workers follow within [`super::worker::POLL_INTERVAL`].
    pub(super) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    /// Where worker `index` writes its progress.
    ///
    /// # Panics
    /// When there are fewer workers.
    pub(super) fn progress(&self, index: usize) -> &Progress {
        &self.progress[index]
    }

    /// The sum of one counter over all workers.
    pub(super) fn sum(&self, counter: impl Fn(&Progress) -> &AtomicU32) -> u32 {
        self.progress.iter().map(|p| counter(p).load(Ordering::Relaxed)).sum()
    }

    /// Answers so far, of all workers.
    pub(super) fn answered(&self) -> u64 {
        self.progress.iter().map(|p| p.answered.load(Ordering::Relaxed)).sum()
    }

    /// Notes that a switch has lost its connection, with the reason.
    pub(super) fn fail(&self, switch: u32, reason: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = faults.iter_mut().find(|loss| loss.reason == reason) {
            known.others += 1;
        } else if faults.len() < FAULTS_KEPT_MAX {
            faults.push(Disconnects { reason, first: switch, others: 0 });
        }
    }

    /// How many switches have lost their connection.
    pub(super) fn failed(&self) -> u32 {
        self.failed.load(Ordering::Relaxed)
    }

    /// The first few reasons, each with the switches it befell.
    pub(super) fn faults(&self) -> Vec<String> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let words = |loss: &Disconnects| match loss.others {
            0 => format!("switch {}: {}", loss.first, loss.reason),
            others => format!("switch {} and {others} more: {}", loss.first, loss.reason),
        };
        faults.iter().map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_reasons_are_told_once_and_kept_within_bounds() {
        let shared = Shared::new(1);
        (0..3).for_each(|switch| shared.fail(switch, "refused".into()));
        shared.fail(9, "reset".into());
        assert_eq!(shared.faults(), ["switch 0 and 2 more: refused", "switch 9: reset"]);
        (0..100).for_each(|switch| shared.fail(switch, format!("reason {switch}")));
        assert_eq!((shared.faults().len(), shared.failed()), (FAULTS_KEPT_MAX, 104));
    }

    #[test]
    fn stages_come_in_their_order() {
        let shared = Shared::new(1);
        for (number, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, number);
            shared.enter(stage);
            assert_eq!(shared.stage(), stage);
        }
    }
}
