//! What the leader of a colony does: it reconciles its log with the registry, sends copies of bees, splits and ends bees, and
//! forgets lanes.

use crate::messages::key_of;
use crate::mutant::Mutant;
use crate::world::{Packet, World, at, id};
use beehive_protocol::{
    Aim, AppId, BeeId, CellId, Emit, LaneId, Leader, LogState, Proposal, Record, RegistryState, Seq,
    StageFrame, StagePart, Step, Untold, forget, frames, release, split, stage, steps,
};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Maximum size of a part of a bee's copy: a row and a message get a part of their own.
const PART_BYTES_MAX: usize = 8;

impl World {
    /// Returns what the leader of a colony has executed, and its replica, unless nothing reaches it.
    pub(crate) fn office(&self, colony: usize) -> Option<(&LogState, Rc<RegistryState>)> {
        let hive = self.leader(colony)?;
        Some((&self.colonies[colony].office.as_ref()?.state, self.view_of(hive)))
    }

    pub(crate) fn steps_of(
        &self,
        colony: usize,
        log: &LogState,
        view: &RegistryState,
        cancelled: &BTreeSet<BeeId>,
    ) -> Vec<Step> {
        let mut log = std::borrow::Cow::Borrowed(log);
        if self.is(Mutant::StaleReplicaTrusted) {
            log.to_mut().known = 0
        }
        let leader = Leader { colony: id(colony), log: &log, view };
        let mut all = steps(leader, cancelled, &[]);
        let view_index = view.index();
        match self.mutant {
            Some(Mutant::CreateAfterRelease) => {
                let mut forgets = log.clone().into_owned();
                forgets.untold.retain(|untold| !matches!(untold, Untold::Released { .. }));
                let leader = Leader { log: &forgets, ..leader };
                let again = steps(leader, cancelled, &[]).into_iter();
                all.extend(again.filter(|step| matches!(step, Step::Append(Record::Create { .. }))))
            }
            Some(Mutant::ChangeUntold) => {
                for ((app, bee), image) in log.bees.iter().filter(|(_, image)| !image.is_frozen()) {
                    let entry = view.bee(*bee).filter(|entry| entry.epoch == image.epoch);
                    if let Some(Aim::Colony(to)) = entry.and_then(|entry| entry.aim)
                        && to != id(colony)
                    {
                        let lanes = log.lanes_of(*app, *bee);
                        let (app, bee, view) = (*app, *bee, view_index);
                        all.push(Step::Append(Record::Freeze { app, bee, lanes, to, view }))
                    }
                }
            }
            Some(Mutant::DropBeforeOwn) => {
                let sent = all.iter().filter_map(|step| match step {
                    Step::Send { app, bee, .. } => Some((*app, *bee)),
                    _ => None,
                });
                let drops = sent.map(|(app, bee)| Step::Append(Record::Drop { app, bee, view: view_index }));
                let drops: Vec<Step> = drops.collect();
                all.extend(drops)
            }
            _ => {}
        }
        all
    }

    /// The leader takes a step, if there is one.
    pub(crate) fn reconcile(&mut self, colony: usize) {
        let Some((state, view)) = self.office(colony) else { return };
        let state = state.clone();
        let committed = self.colonies[colony].committed.clone();
        let bees: Vec<BeeId> = state.bees.keys().map(|(_, bee)| *bee).collect();
        let cancelled = bees.into_iter().filter(|_| self.random.one_in(12)).collect();
        // it appends what follows from what it has executed, and says what follows from what is committed
        let mut all = self.steps_of(colony, &state, &view, &cancelled);
        all.retain(|step| matches!(step, Step::Append(_)));
        let said = self.steps_of(colony, &committed, &view, &cancelled);
        all.extend(said.into_iter().filter(|step| !matches!(step, Step::Append(_))));
        if let Some(step) = self.random.pick(&all) {
            self.take(colony, &committed, step)
        }
    }

    pub(crate) fn take(&mut self, colony: usize, committed: &LogState, step: Step) {
        match step {
            Step::Append(Record::Freeze { app, bee, lanes, to, view }) if self.is(Mutant::SkipFreeze) => {
                let mut copy = committed.clone();
                copy.carry_out(&Record::Freeze { app, bee, lanes, to, view });
                self.send_copy(&copy, app, bee)
            }
            Step::Append(record) => self.append(colony, record, None, Vec::new()),
            Step::Propose(proposal) => self.send(Packet::Propose(proposal)),
            Step::Send { app, bee, .. } => self.send_copy(committed, app, bee),
        }
    }

    fn send_copy(&mut self, log: &LogState, app: AppId, bee: BeeId) {
        for mut frame in frames(log, app, bee, PART_BYTES_MAX) {
            let known = *self.copies.entry((bee, frame.epoch)).or_insert(frame.copy);
            let is_frozen = !self.is(Mutant::SkipFreeze);
            assert!(known == frame.copy || !is_frozen, "FrozenChanged: {bee} has two copies");
            match (self.mutant, &mut frame.part) {
                (Some(Mutant::DedupNotMoved), StagePart::Bee(image)) => image.seen = Default::default(),
                (Some(Mutant::DedupNotMoved), StagePart::Seen(seen)) => *seen = Default::default(),
                (Some(Mutant::LaneNotMoved), StagePart::Bee(image)) => image.next_seq = Seq::ZERO,
                (Some(Mutant::OutboxNotMoved), StagePart::Outbox(emits)) => emits.clear(),
                (Some(Mutant::EpochInIdentity), StagePart::Outbox(emits)) => {
                    let own = LaneId::of_bee(app, bee);
                    let other = LaneId::of_bee(app, BeeId(bee.0 + 1000 * u64::from(frame.epoch.0)));
                    emits.iter_mut().filter(|emit| emit.id.lane == own).for_each(|emit| emit.id.lane = other)
                }
                _ => {}
            }
            self.send(Packet::Frame(frame))
        }
    }

    /// A part of a copy arrives.
    fn stage(&mut self, frame: &StageFrame) {
        let colony = at(frame.to);
        let staging = self.staging.get(&(colony, frame.bee)).copied();
        let Some((state, view)) = self.office(colony) else { return };
        let mut log = std::borrow::Cow::Borrowed(state);
        match self.mutant {
            Some(Mutant::StaleReplicaTrusted) => log.to_mut().known = 0,
            Some(Mutant::StageAfterFuse) => {
                log.to_mut().untold.retain(|untold| !matches!(untold, Untold::Fused { .. }))
            }
            Some(Mutant::StageAfterRelease) => {
                log.to_mut().untold.retain(|untold| !matches!(untold, Untold::Released { .. }))
            }
            _ => {}
        }
        let leader = Leader { colony: frame.to, log: &log, view: &view };
        let mut record = stage(leader, frame, staging);
        let (app, bee, epoch) = (frame.app, frame.bee, frame.epoch);
        if self.is(Mutant::PartTwice)
            && record.is_none()
            && let Some(staged) = log.staged.get(&(app, bee))
            && staged.bee.epoch == epoch
            && !staged.is_complete()
            && frame.at > 0
        {
            let (at, of, view) = (staged.parts, staged.of, frame.known);
            record = Some(Record::Stage { app, bee, epoch, part: frame.part.clone(), at, of, view })
        }
        if self.is(Mutant::OwnBeforeStage) {
            let before = beehive_protocol::Epoch(epoch.0 - 1);
            self.send(Packet::Propose(Proposal::Commit { bee, epoch: before, to: frame.to }))
        }
        if let Some(record) = record {
            self.staging.insert((colony, bee), frame.copy);
            self.append(colony, record, None, Vec::new());
            let is_staged = self.office(colony).and_then(|(state, _)| state.staged.get(&(app, bee)));
            if self.is(Mutant::ActivateOnStage) && is_staged.is_some_and(|staged| staged.is_complete()) {
                self.append(colony, Record::Adopt { app, bee, epoch, view: 0 }, None, Vec::new())
            }
        }
    }

    /// A deposed leader, which was not told, goes on.
    pub(crate) fn work_of_deposed(&mut self, colony: usize) {
        let count = self.colonies[colony].deposed.len();
        if count == 0 {
            return;
        }
        let chosen = self.random.below(count);
        let deposed = &self.colonies[colony].deposed[chosen];
        if self.hives[deposed.hive].is_cut {
            return;
        }
        let at = if self.is(Mutant::DeposedRefreshes) { self.hives[deposed.hive].view } else { deposed.view };
        let (log, view) = (deposed.state.clone(), self.registry[at].clone());
        self.note("deposed", format_args!("{} goes on", id(colony)));
        let emits: Vec<Emit> = log.outbox.values().map(|waiting| waiting.emit.clone()).collect();
        let all = self.steps_of(colony, &log, &view, &BTreeSet::new());
        for step in all {
            if !matches!(step, Step::Append(_)) && self.random.one_in(2) {
                self.take(colony, &log, step)
            }
        }
        emits.iter().for_each(|emit| self.transmit(colony, &log, &view, emit, &BTreeSet::new()));
        self.state_floor(&log, &view, &BTreeSet::new())
    }

    /// Lets a bee split or give back its cells, if it may.
    pub(crate) fn change(&mut self, colony: usize) {
        let Some((state, view)) = self.office(colony) else { return };
        let mut log = state.clone();
        if self.is(Mutant::ChangeUntold) {
            log.untold.clear()
        }
        if self.is(Mutant::ReleaseBusy) || self.is(Mutant::SplitBusy) {
            log.outbox.clear()
        }
        if self.is(Mutant::ReleaseNaive) {
            for image in log.bees.values_mut() {
                image.seen = Default::default()
            }
        }
        let leader = Leader { colony: id(colony), log: &log, view: &view };
        let bees: Vec<_> = log.bees.keys().copied().collect();
        let splits: Vec<Record> = bees.iter().filter_map(|bee| self.split_of(leader, *bee)).collect();
        let releases: Vec<Record> =
            bees.iter().filter_map(|(app, bee)| release(leader, *app, *bee)).collect();
        let all = if self.random.one_in(3) && !releases.is_empty() { releases } else { splits };
        let Some(mut record) = self.random.pick(&all) else { return };
        match &mut record {
            Record::Release { bee, .. } if self.is(Mutant::ReleaseRegistryFirst) => {
                self.send(Packet::Propose(Proposal::Release { bee: *bee }))
            }
            _ => {}
        }
        self.append(colony, record, None, Vec::new())
    }

    /// Returns the record by which a bee gives away some of its cells, if it may.
    fn split_of(&mut self, leader: Leader<'_>, (app, bee): (AppId, BeeId)) -> Option<Record> {
        let cells: Vec<CellId> = leader.log.bees[&(app, bee)].cells.iter().copied().collect();
        let given: Vec<CellId> = cells.into_iter().filter(|_| self.random.one_in(2)).collect();
        let keys = given.iter().map(|cell| (0, key_of(*cell))).collect();
        split(leader, app, bee, given, keys)
    }

    /// Lets a log forget lanes, and tells the registry of lanes that have ended.
    pub(crate) fn forget(&mut self, colony: usize) {
        let Some((state, view)) = self.office(colony) else { return };
        let (state, committed) = (state.clone(), self.colonies[colony].committed.clone());
        let all = self.lanes(colony, &state, &committed, &view);
        if let Some(step) = self.random.pick(&all) {
            self.take(colony, &committed, step)
        }
    }

    fn lanes(
        &mut self,
        colony: usize,
        state: &LogState,
        committed: &LogState,
        view: &RegistryState,
    ) -> Vec<Step> {
        let leader = |log| Leader { colony: id(colony), log, view };
        let mut known = std::borrow::Cow::Borrowed(state);
        if self.is(Mutant::ForgetWhileFrozen) {
            known.to_mut().bees.values_mut().for_each(|image| image.leaves_for = None)
        }
        let mut all = forget(leader(&known));
        all.retain(|step| matches!(step, Step::Append(_)));
        if self.is(Mutant::ForgetWithoutRetire) {
            let lanes = state.bees.values().flat_map(|image| image.seen.floors()).map(|(lane, _)| lane);
            let lanes: Vec<LaneId> = lanes.collect();
            if let Some(lane) = self.random.pick(&lanes) {
                all.push(Step::Append(Record::Retire { lanes: vec![lane], view: view.index() }))
            }
        }
        let mut log = committed.clone();
        if self.is(Mutant::RetireBusy) {
            log.outbox.clear()
        }
        all.extend(forget(leader(&log)).into_iter().filter(|step| !matches!(step, Step::Append(_))));
        all
    }

    pub(crate) fn deliver(&mut self, packet: Packet) {
        let colony = match &packet {
            Packet::Propose(proposal) => {
                if let Some(decision) = self.decide(proposal) {
                    self.history.decided(proposal, &decision)
                }
                return;
            }
            Packet::Frame(frame) => return self.stage(frame),
            Packet::Message { colony, .. } | Packet::Ack { colony, .. } | Packet::Floor { colony, .. } => {
                at(*colony)
            }
        };
        match packet {
            Packet::Message { to, floor, message, .. } => self.handle(colony, to, floor, &message),
            Packet::Ack { id, by, .. } => self.acked(colony, id, by),
            Packet::Floor { app, to, lane, floor, .. } => self.raise(colony, (app, to), lane, floor),
            Packet::Propose(_) | Packet::Frame(_) => {}
        }
    }

    /// The leader takes all steps, and sends everything. Returns whether there was nothing to do.
    pub(crate) fn settle(&mut self, colony: usize) -> bool {
        let mut is_quiet = true;
        for _ in 0..200 {
            while self.colonies[colony].office.as_ref().is_some_and(|office| !office.tail.is_empty()) {
                is_quiet = false;
                self.commit(colony)
            }
            let committed = self.colonies[colony].committed.clone();
            let Some((_, view)) = self.office(colony) else { return false };
            let mut all = self.steps_of(colony, &committed, &view, &BTreeSet::new());
            all.extend(self.lanes(colony, &committed, &committed, &view));
            is_quiet &= all.is_empty();
            match all.iter().find(|step| matches!(step, Step::Append(_))) {
                Some(step) => self.take(colony, &committed, step.clone()),
                None => {
                    all.into_iter().for_each(|step| self.take(colony, &committed, step));
                    let (log, skipped) = (self.sent_from(colony), self.skipped(colony));
                    is_quiet &= log.outbox.is_empty();
                    log.outbox
                        .values()
                        .for_each(|waiting| self.transmit(colony, &log, &view, &waiting.emit, &skipped));
                    return is_quiet;
                }
            }
        }
        panic!("I9: {} takes steps without end", id(colony))
    }
}
