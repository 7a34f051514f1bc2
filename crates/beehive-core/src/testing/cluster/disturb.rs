//! The faults that a test can cause at a time of its choice.

use super::trace::Kind;
use super::{Cluster, Colony, FaultKind, Running};
use crate::cell::{BeeId, HiveId};
use crate::hive::MoveError;
use crate::hive::consensus::registry::{Decision, Proposal, Registry, RegistryState};
use std::time::Duration;

impl Cluster {
    /// Ends a hive at once. What its logs have not committed is lost, and nobody is told. It arrives in the logs when the
    /// next process has begun its term, and then has no effect. [`Cluster::restart`] starts the hive again, and
    /// [`Cluster::take_over`] lets another one go on with its bees. Does nothing if the hive is down.
    pub fn crash(&mut self, hive: usize) {
        if self.is_running(hive) {
            self.hit(FaultKind::Crash, Some(hive), "crashes")
        }
        self.end(hive)
    }

    /// Same as [`Cluster::crash`], without an event.
    pub(super) fn end(&mut self, hive: usize) {
        let Some(running) = self.members[hive].running.take() else { return };
        self.journals(hive).for_each(|journal| journal.stop());
        self.network.disconnect(HiveId(hive as u32));
        running.replica.stop();
        self.members[hive].followers.take().iter().for_each(|followers| followers.stop());
        // nothing that the hive does from now on is seen by anybody
        self.members[hive].process.resume();
        self.settle(running.hive.stop(Duration::ZERO));
        self.colonies.iter_mut().filter(|colony| colony.leader == hive).for_each(Colony::is_abandoned)
    }

    /// Separates these hives from all others, or ends the partition if `hives` is empty. No packet passes. The smaller side
    /// (of equal ones: `hives`) is also separated from the registry, and its logs commit nothing, because a majority of their
    /// members is on the other side. Replaces an earlier partition, and repairs what [`Cluster::cut`] has cut.
    ///
    /// ```
    /// # extern crate beehive_core as beehive;
    /// # use beehive::{App, Dict, Message, handlers};
    /// # use beehive::testing::Cluster;
    /// # use std::time::Duration;
    /// # #[derive(Message)]
    /// # #[message(reply = u64)]
    /// # struct Count(u64);
    /// # #[derive(App)]
    /// # struct Counters { counters: Dict<u64, u64> }
    /// # #[handlers]
    /// # impl Counters {
    /// #     #[rcv]
    /// #     fn count(&mut self, msg: &Count) -> u64 {
    /// #         self.counters.update(msg.0, |counter| { *counter += 1; *counter })
    /// #     }
    /// # }
    /// let mut cluster = Cluster::of::<Counters>().hives(3).start(1);
    /// let (one, other) = (cluster.hive(0).clone(), cluster.hive(1).clone());
    /// assert_eq!(cluster.drive(one.request(Count(7))), Ok(1));
    /// // hive 0 has the counter, and cannot commit anything
    /// cluster.partition(&[0]);
    /// assert!(cluster.drive(other.request(Count(7))).is_err());
    /// cluster.partition(&[]);
    /// // the request whose outcome was unknown has been handled meanwhile
    /// cluster.advance(Duration::from_secs(1));
    /// assert_eq!(cluster.drive(other.request(Count(7))), Ok(3));
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if there is no such hive.
    #[track_caller]
    pub fn partition(&mut self, hives: &[usize]) {
        let (inside, outside): (Vec<usize>, Vec<usize>) =
            (0..self.hives()).partition(|hive| hives.contains(hive));
        assert!(hives.iter().all(|hive| *hive < self.hives()), "there are only {} hives", self.hives());
        match hives {
            [] => self.tell(Kind::Fault, None, "the partition ends"),
            _ => self.hit(FaultKind::Partition, None, &format!("partition: {inside:?} and {outside:?}")),
        }
        let ids = |hives: &[usize]| hives.iter().map(|hive| HiveId(*hive as u32)).collect::<Vec<_>>();
        self.network.partition(&ids(&inside), &ids(&outside));
        let isolated = if inside.len() <= outside.len() { inside } else { outside };
        for hive in 0..self.hives() {
            self.isolate(hive, isolated.contains(&hive))
        }
    }

    fn isolate(&mut self, hive: usize, is_isolated: bool) {
        if std::mem::replace(&mut self.members[hive].is_isolated, is_isolated) == is_isolated {
            return;
        }
        self.journals(hive).for_each(|journal| journal.stall(is_isolated));
        if let Some(Running { replica, .. }) = &self.members[hive].running {
            replica.cut(is_isolated)
        }
        self.members[hive].followers.iter().for_each(|followers| followers.cut(is_isolated))
    }

    /// Cuts the connection between two hives, in both directions, or repairs it. Both still reach the registry and commit.
    pub fn cut(&mut self, one: usize, other: usize, is_cut: bool) {
        let what =
            format!("the connection to hive {other} {}", if is_cut { "is cut" } else { "is repaired" });
        match is_cut {
            true => self.hit(FaultKind::Partition, Some(one), &what),
            false => self.tell(Kind::Fault, Some(one), what),
        }
        self.network.cut(HiveId(one as u32), HiveId(other as u32), is_cut)
    }

    /// Pauses the process of a hive for some time, as a long page fault or a stopped virtual machine would: none of its tasks
    /// runs, and the packets to it wait. Its clock goes on. Requests that the test itself gives to the hive are not held up
    /// ([`Cluster::any_hive`] returns another hive). A later pause replaces this one.
    ///
    /// # Panics
    ///
    /// Panics if the hive is down.
    #[track_caller]
    pub fn pause(&mut self, hive: usize, duration: Duration) {
        assert!(self.is_running(hive), "hive {hive} is down");
        self.hit(FaultKind::Pause, Some(hive), &format!("is paused for {duration:?}"));
        self.members[hive].process.pause(duration)
    }

    /// Makes each commit of a hive's logs take longer by `delay`, also of the logs that it leads later. Zero ends this.
    pub fn slow_disk(&mut self, hive: usize, delay: Duration) {
        match delay.is_zero() {
            true => self.tell(Kind::Fault, Some(hive), "its disk is fast again"),
            false => {
                self.hit(FaultKind::SlowDisk, Some(hive), &format!("each commit takes {delay:?} longer"))
            }
        }
        self.members[hive].disk_delay = delay;
        self.journals(hive).for_each(|journal| journal.slow_down(delay))
    }

    /// Sets the time by which a hive's clock is ahead. If that is less than before, the clock of a running hive stands still
    /// until the time has caught up, because no clock runs backwards. After a restart, it may show an earlier time.
    pub fn skew_clock(&mut self, hive: usize, ahead: Duration) {
        match ahead.is_zero() {
            true => self.tell(Kind::Fault, Some(hive), "its clock is right again"),
            false => self.hit(FaultKind::ClockSkew, Some(hive), &format!("its clock is ahead by {ahead:?}")),
        }
        self.members[hive].process.set_ahead(ahead)
    }

    /// Lets a hive's replica of the registry learn nothing for some time.
    ///
    /// # Panics
    ///
    /// Panics if the hive is down.
    #[track_caller]
    pub fn hold_replica(&self, hive: usize, duration: Duration) {
        match &self.members[hive].running {
            Some(running) => running.replica.hold(duration),
            None => panic!("hive {hive} is down"),
        }
    }

    /// Suspends or resumes the commits of a hive's logs.
    ///
    /// # Panics
    ///
    /// Panics if the hive is down.
    #[track_caller]
    pub fn stall(&self, hive: usize, is_stalled: bool) {
        assert!(self.is_running(hive), "hive {hive} is down");
        self.tell(Kind::Fault, Some(hive), if is_stalled { "its logs stall" } else { "its logs go on" });
        self.journals(hive).for_each(|journal| journal.stall(is_stalled))
    }

    /// Ends all faults: none happens at random any more, logs refuse nothing, the network neither loses nor doubles packets, no
    /// partition, pause, stall, slow disk, clock skew or held replica is left, and hives that are down start. A clock that was ahead
    /// stands still until the time has caught up. Time does not pass: what was under way may still be.
    ///
    /// # Panics
    ///
    /// Panics if a hive does not start.
    #[track_caller]
    pub fn heal(&mut self) {
        self.storm = None;
        self.tell(Kind::Fault, None, "all faults end");
        self.setup.refuse_one_in = 0;
        self.colonies.iter().flat_map(|colony| &colony.journal).for_each(|journal| journal.accept_all());
        self.network.heal();
        for hive in 0..self.hives() {
            self.isolate(hive, false);
            let member = &mut self.members[hive];
            member.disk_delay = Duration::ZERO;
            member.process.resume();
            member.process.set_ahead(Duration::ZERO);
            member.running.iter().for_each(|running| running.replica.release());
            self.journals(hive).for_each(|journal| {
                journal.slow_down(Duration::ZERO);
                journal.stall(false)
            })
        }
        (0..self.hives()).for_each(|hive| self.restart(hive));
        self.tell_deposed()
    }

    /// Moves a bee to a hive, and lets time pass until the registry says that it is there: see
    /// [`Hive::move_bee`](crate::Hive::move_bee). [`Cluster::bees`] returns the bees of an app.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`] if the bee was not moved.
    #[track_caller]
    pub fn move_bee(&mut self, bee: BeeId, to: usize) -> Result<(), MoveError> {
        let running = self.members.iter().flat_map(|member| &member.running).next();
        let Some(Running { hive, replica }) = running.cloned() else { return Err(MoveError::Unavailable) };
        self.hit(FaultKind::Move, Some(to), &format!("{bee} moves here"));
        // the hive may not know yet where the bee is, and may crash before it does
        let index = self.registry(RegistryState::index);
        self.drive(async move {
            tokio::select! {
                biased;
                () = replica.wait(index) => {}
                () = hive.over() => return Err(MoveError::Unavailable),
            }
            hive.move_bee(bee, HiveId(to as u32)).await
        })
    }

    /// Asks the registry to move a bee to a hive, and lets no time pass. Returns whether the bee will move, unless something
    /// prevents it.
    pub fn aim(&mut self, bee: BeeId, to: usize) -> bool {
        let led = self.led_by(to);
        let epoch = self.registry(|view| view.bee(bee).map(|entry| entry.epoch));
        let Some(epoch) = epoch.filter(|_| !led.is_empty()) else { return false };
        let colony = led[bee.0 as usize % led.len()];
        let decided = self.registry.decide(&[Proposal::Aim { bee, epoch, colony }]);
        let moves = matches!(decided[..], [Decision::Done { .. }]);
        if moves {
            self.hit(FaultKind::Move, Some(to), &format!("{bee} moves here"))
        }
        moves
    }

    /// Adds a fault to the trace, and counts it.
    pub(super) fn hit(&mut self, kind: FaultKind, hive: Option<usize>, what: &str) {
        *self.counts.entry(kind).or_default() += 1;
        self.tell(Kind::Fault, hive, what)
    }
}
