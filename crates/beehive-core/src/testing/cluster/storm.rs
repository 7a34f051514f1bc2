//! Faults that happen at random times, which the seed of a cluster decides.

use super::Cluster;
use crate::hive::consensus::registry::ColonyId;
use crate::limits;
use crate::seams::Platform;
use crate::testing::platform::Chance;
use crate::time::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest time by which a slow disk is slower, and by which a wrong clock is ahead.
const DISK_DELAY_MAX: Duration = Duration::from_millis(20);
const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(1);
/// Default of [`Faults::lasting`].
const LASTING_MAX: Duration = Duration::from_millis(200);

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum FaultKind {
    /// A hive crashes ([`Cluster::crash`]). It starts again later. Before that, another hive may take over its bees
    /// ([`Cluster::take_over`]).
    Crash,
    /// A hive is separated from the others ([`Cluster::partition`]). Another one may lead its colonies, and it does not know.
    Partition,
    /// A hive loses a colony to another one and lives on ([`Cluster::depose`]). It may not be told.
    Depose,
    /// A hive does nothing for some time ([`Cluster::pause`]).
    Pause,
    /// A hive's commits take longer ([`Cluster::slow_disk`]).
    SlowDisk,
    /// A bee moves to another hive ([`Cluster::move_bee`]).
    Move,
    /// A hive's clock is ahead ([`Cluster::skew_clock`]).
    ClockSkew,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 7] = [
        FaultKind::Crash,
        FaultKind::Partition,
        FaultKind::Depose,
        FaultKind::Pause,
        FaultKind::SlowDisk,
        FaultKind::Move,
        FaultKind::ClockSkew,
    ];

    /// Returns the name.
    pub(super) fn name(self) -> &'static str {
        match self {
            FaultKind::Crash => "crash",
            FaultKind::Partition => "partition",
            FaultKind::Depose => "depose",
            FaultKind::Pause => "pause",
            FaultKind::SlowDisk => "slow disk",
            FaultKind::Move => "move",
            FaultKind::ClockSkew => "clock skew",
        }
    }
}

/// Faults that happen at random times. The seed of the cluster decides when, which, and to which hive.
///
/// If there are several hives, at least one of them always runs. Each fault ends after some time, except for moves and for bees that
/// another hive has taken over. [`Cluster::heal`] ends all of them. The end of a partition also repairs what a test has
/// [cut](Cluster::cut).
///
/// ```
/// use beehive_core::testing::{FaultKind, Faults};
/// use std::time::Duration;
///
/// // on average, one fault every 50 ms of virtual time
/// let faults = Faults::every(Duration::from_millis(50)).without(&[FaultKind::ClockSkew]);
/// # assert!(format!("{faults:?}").contains("Crash") && !format!("{faults:?}").contains("Skew"));
/// ```
#[derive(Clone, Debug)]
pub struct Faults {
    every: Duration,
    lasting_max: Duration,
    kinds: Vec<FaultKind>,
}

impl Faults {
    /// Returns faults of all kinds. `mean` is the mean time between two of them, in virtual time.
    ///
    /// # Panics
    ///
    /// Panics if `mean` is zero.
    #[track_caller]
    pub fn every(mean: Duration) -> Faults {
        assert!(!mean.is_zero(), "time must pass between two faults");
        Faults { every: mean, lasting_max: LASTING_MAX, kinds: FaultKind::ALL.to_vec() }
    }

    /// Only faults of these kinds happen.
    pub fn only(mut self, kinds: &[FaultKind]) -> Faults {
        self.kinds.retain(|kind| kinds.contains(kind));
        self
    }

    /// No faults of these kinds happen.
    pub fn without(mut self, kinds: &[FaultKind]) -> Faults {
        self.kinds.retain(|kind| !kinds.contains(kind));
        self
    }

    /// Sets the longest time that a fault lasts. The default is 200 ms.
    pub fn lasting(mut self, max: Duration) -> Faults {
        self.lasting_max = max;
        self
    }
}

/// What ends or follows a fault.
#[derive(Clone, Copy)]
enum Sequel {
    Restart(usize),
    TakeOver(usize),
    Repair,
    FailOver(usize),
    FastDisk(usize),
    RightClock(usize),
}

/// The faults of one run.
pub(super) struct Storm {
    faults: Faults,
    chance: Chance,
    /// The time of the next fault; `None` before the first one is planned, and if no kind is left.
    next: Option<Time>,
    sequels: BTreeMap<(Time, u64), Sequel>,
    sequels_begun: u64,
}

impl Storm {
    pub(super) fn new(faults: Faults, seed: u64) -> Storm {
        let chance = Chance::new(seed ^ 0x0073_746f_726d);
        Storm { faults, chance, next: None, sequels: BTreeMap::new(), sequels_begun: 0 }
    }

    /// Returns a random time of at most `max`, and at least a nanosecond.
    fn within(&mut self, max: Duration) -> Duration {
        Duration::from_nanos(1 + self.chance.next() % (max.as_nanos() as u64).max(1))
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(self.chance.below(all.len())).copied()
    }

    fn coin(&mut self) -> bool {
        self.chance.below(2) == 0
    }

    fn plan(&mut self, at: Time, sequel: Sequel) {
        self.sequels_begun += 1;
        self.sequels.insert((at, self.sequels_begun), sequel);
    }

    fn plan_next(&mut self, now: Time) {
        let pause = self.within(self.faults.every.saturating_mul(2));
        self.next = (!self.faults.kinds.is_empty()).then(|| now + pause)
    }
}

impl Cluster {
    /// Plans the first fault, if there are any.
    pub(super) fn begin_storm(&mut self) {
        let now = self.platform.now();
        self.storm.iter_mut().for_each(|storm| storm.plan_next(now))
    }

    /// Returns the time at which the next fault happens or ends.
    pub(super) fn next_strike(&self) -> Option<Time> {
        let storm = self.storm.as_ref()?;
        let sequel = storm.sequels.first_key_value().map(|((at, _), _)| *at);
        [storm.next, sequel].into_iter().flatten().min()
    }

    /// Returns the hives that run and are not paused.
    pub(super) fn awake(&self) -> impl Iterator<Item = usize> {
        (0..self.hives()).filter(|hive| self.is_running(*hive) && !self.members[*hive].process.is_paused())
    }

    /// Returns the hives that could lead a colony now.
    fn able(&self) -> Vec<usize> {
        self.awake().filter(|hive| !self.members[*hive].is_isolated).collect()
    }

    /// Lets the next fault happen, or end.
    #[track_caller]
    pub(super) fn strike(&mut self) {
        // in between, a method of the cluster may look for the next one
        let Some(mut storm) = self.storm.take() else { return };
        let now = self.platform.now();
        match storm.sequels.first_key_value().map(|((at, _), _)| *at) {
            Some(at) if storm.next.is_none_or(|next| at <= next) => {
                if let Some((_, sequel)) = storm.sequels.pop_first() {
                    self.follow_up(&mut storm, sequel)
                }
            }
            _ => {
                storm.plan_next(now);
                if let Some(kind) = storm.one_of(&storm.faults.kinds.clone()) {
                    self.strike_with(&mut storm, kind)
                }
            }
        }
        self.storm = Some(storm)
    }

    #[track_caller]
    fn strike_with(&mut self, storm: &mut Storm, kind: FaultKind) {
        let now = self.platform.now();
        let end = now + storm.within(storm.faults.lasting_max);
        let middle = now + (end - now) / 2;
        let able = self.able();
        // one of several hives always runs and reaches the registry
        let is_alone = self.hives() == 1;
        let is_spare = |hive: &usize| is_alone || able.iter().any(|one| one != hive);
        let spare: Vec<usize> =
            (0..self.hives()).filter(|hive| self.is_running(*hive) && is_spare(hive)).collect();
        match kind {
            FaultKind::Crash => {
                let Some(hive) = storm.one_of(&spare) else { return };
                self.crash(hive);
                if storm.coin() {
                    storm.plan(middle, Sequel::TakeOver(hive))
                }
                storm.plan(end, Sequel::Restart(hive))
            }
            FaultKind::Partition => {
                if is_alone || self.members.iter().any(|member| member.is_isolated) {
                    return;
                }
                let Some(hive) = storm.one_of(&spare) else { return };
                self.partition(&[hive]);
                if storm.coin() {
                    storm.plan(middle, Sequel::FailOver(hive))
                }
                storm.plan(end, Sequel::Repair)
            }
            FaultKind::Depose => {
                let led = self.led_colonies();
                let (Some(colony), Some(by)) = (storm.one_of(&led), storm.one_of(&able)) else { return };
                self.depose_at_random(storm, colony, by)
            }
            FaultKind::Pause => {
                let spare: Vec<usize> =
                    spare.into_iter().filter(|hive| !self.members[*hive].process.is_paused()).collect();
                let Some(hive) = storm.one_of(&spare) else { return };
                self.pause(hive, end - now)
            }
            FaultKind::SlowDisk => {
                let hive = storm.chance.below(self.hives());
                let delay = storm.within(DISK_DELAY_MAX);
                self.slow_disk(hive, delay);
                storm.plan(end, Sequel::FastDisk(hive))
            }
            FaultKind::Move => {
                let bees: Vec<_> = self
                    .registry(|view| view.colonies().flat_map(|(colony, _)| view.bees_at(colony)).collect());
                let hive = storm.chance.below(self.hives());
                if let Some(bee) = storm.one_of(&bees) {
                    self.aim(bee, hive);
                }
            }
            FaultKind::ClockSkew => {
                let hive = storm.chance.below(self.hives());
                let ahead = storm.within(CLOCK_AHEAD_MAX);
                self.skew_clock(hive, ahead);
                storm.plan(end, Sequel::RightClock(hive))
            }
        }
    }

    #[track_caller]
    fn depose_at_random(&mut self, storm: &mut Storm, colony: ColonyId, by: usize) {
        let old = self.leader(colony);
        if old != by && !self.has_room(by, 1) {
            return;
        }
        // a process that is paused or cut off cannot be told
        let can_be_told = self.able().contains(&old);
        match can_be_told && storm.coin() {
            true => self.depose(colony, by),
            false => self.depose_untold(colony, by),
        }
    }

    /// Checks whether a hive may lead so many colonies more. A hive whose logs were taken over founds new ones, so their number
    /// grows in a long run.
    fn has_room(&self, hive: usize, more: usize) -> bool {
        self.led_by(hive).len() + more <= limits::COLONIES_TAKEN_MAX
    }

    #[track_caller]
    fn follow_up(&mut self, storm: &mut Storm, sequel: Sequel) {
        match sequel {
            Sequel::Restart(hive) => self.restart(hive),
            Sequel::TakeOver(dead) => {
                let more = self.led_by(dead).len();
                let able: Vec<usize> =
                    self.able().into_iter().filter(|hive| self.has_room(*hive, more)).collect();
                // without one, the hive starts again with the logs that it had
                if !self.is_running(dead)
                    && let Some(by) = storm.one_of(&able)
                {
                    self.take_over(dead, by)
                }
            }
            Sequel::Repair => self.partition(&[]),
            Sequel::FailOver(isolated) => {
                let able = self.able();
                for colony in self.led_by(isolated) {
                    let is_led = self.led_colonies().contains(&colony);
                    match storm.one_of(&able) {
                        Some(by) if is_led && by != isolated && self.has_room(by, 1) => {
                            self.depose_untold(colony, by)
                        }
                        _ => {}
                    }
                }
            }
            Sequel::FastDisk(hive) => self.slow_disk(hive, Duration::ZERO),
            Sequel::RightClock(hive) => self.skew_clock(hive, Duration::ZERO),
        }
    }
}
