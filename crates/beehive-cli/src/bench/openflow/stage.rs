//! State shared by the conductor and the worker threads: the stage of the run and the progress of the workers.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::limits::FAULTS_KEPT_MAX;
use super::switch::Load;

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    /// Switches connect and complete their handshakes.
    Connect,
    /// Switches announce their hosts.
    Announce,
    /// Switches send traffic that does not count.
    WarmUp,
    /// Switches send traffic that counts.
    Measure,
    /// Switches wait for the last answers.
    Drain,
    /// Threads exit.
    Stop,
}

impl Stage {
    const ALL: [Self; 6] =
        [Self::Connect, Self::Announce, Self::WarmUp, Self::Measure, Self::Drain, Self::Stop];

    /// Returns the packets that switches send in this stage.
    pub(super) fn offer(self) -> Load {
        match self {
            Self::Connect | Self::Drain | Self::Stop => Load::None,
            Self::Announce => Load::Announcements,
            Self::WarmUp | Self::Measure => Load::Traffic,
        }
    }
}

/// Progress of one worker, written only by that worker. Aligned to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Progress {
    /// Number of switches that have completed their handshake.
    pub(super) ready: AtomicU32,
    /// Number of switches that have a table-miss flow or do not need one.
    pub(super) table_miss: AtomicU32,
    /// Number of switches that have been asked for their flows.
    pub(super) flows_read: AtomicU32,
    /// Number of switches that have announced all hosts.
    pub(super) announced: AtomicU32,
    /// Number of outstanding packet-ins at the last sweep.
    pub(super) outstanding: AtomicU32,
    /// Number of answered packet-ins since the start of the run.
    pub(super) answered: AtomicU64,
}

/// The state shared by all threads of a run.
#[derive(Debug)]
pub(super) struct Shared {
    begun: Instant,
    stage: AtomicU8,
    progress: Vec<Progress>,
    /// Number of switches that have lost their connection.
    failed: AtomicU32,
    faults: Mutex<Vec<Disconnects>>,
}

/// Switches that lost their connections for the same reason.
#[derive(Debug)]
struct Disconnects {
    reason: String,
    /// The first of these switches.
    first: u32,
    /// Number of further switches.
    others: u32,
}

impl Shared {
    /// Returns the state at the start of a run with this number of workers.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            begun: Instant::now(),
            stage: AtomicU8::new(Stage::Connect as u8),
            progress: (0..workers).map(|_| Progress::default()).collect(),
            failed: AtomicU32::new(0),
            faults: Mutex::default(),
        }
    }

    /// Returns the time since the start of the run.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the current stage.
    #[inline]
    pub(super) fn stage(&self) -> Stage {
        Stage::ALL.get(usize::from(self.stage.load(Ordering::Acquire))).copied().unwrap_or(Stage::Stop)
    }

    /// Starts a stage. Workers notice it within [`super::worker::POLL_INTERVAL`].
    pub(super) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    /// Returns the progress of worker `index`.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer workers.
    pub(super) fn progress(&self, index: usize) -> &Progress {
        &self.progress[index]
    }

    /// Returns the sum of a counter over all workers.
    pub(super) fn sum(&self, counter: impl Fn(&Progress) -> &AtomicU32) -> u32 {
        self.progress.iter().map(|p| counter(p).load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of answers of all workers since the start of the run.
    pub(super) fn answered(&self) -> u64 {
        self.progress.iter().map(|p| p.answered.load(Ordering::Relaxed)).sum()
    }

    /// Records that a switch has lost its connection.
    pub(super) fn fail(&self, switch: u32, reason: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = faults.iter_mut().find(|loss| loss.reason == reason) {
            known.others += 1;
        } else if faults.len() < FAULTS_KEPT_MAX {
            faults.push(Disconnects { reason, first: switch, others: 0 });
        }
    }

    /// Returns the number of switches that have lost their connection.
    pub(super) fn failed(&self) -> u32 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Describes the first distinct reasons for lost connections. Each description names the affected switches.
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
    fn equal_reasons_are_reported_once_and_their_number_is_bounded() {
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
