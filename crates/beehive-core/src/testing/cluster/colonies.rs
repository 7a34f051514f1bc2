//! The colonies of a simulated cluster: their logs, and which hive leads each of them.

use super::{Cluster, FaultKind};
use crate::cell::HiveId;
use crate::hive::consensus::journal::{Entry, EntryNumber, LogState};
use crate::hive::consensus::registry::{ColonyId, Proposal};
use crate::testing::TestJournal;
use crate::testing::cluster::trace::Kind;
use crate::testing::journal::Told;
use std::sync::Arc;

/// A colony. All hives replicate its log.
pub(super) struct Colony {
    /// The state of its log, without what the present leader has committed.
    base: LogState,
    /// The entries that the last leader appended and that were not committed. They arrive when the next one has begun a term.
    late: Vec<Arc<Entry>>,
    /// The hive that leads the colony, or that led it last.
    pub(super) leader: usize,
    /// The journal of the leader; `None` while nobody leads the colony.
    pub(super) journal: Option<Arc<TestJournal>>,
}

/// Applies what a journal has committed.
#[track_caller]
fn follow(state: &mut LogState, journal: &TestJournal) {
    for bytes in journal.log() {
        match Entry::decode(&bytes) {
            Ok(entry) => {
                state.apply(&entry);
            }
            Err(error) => panic!("an entry in a log: {error}"),
        }
    }
}

impl Colony {
    /// Returns the state of the log, as its committed entries say.
    #[track_caller]
    pub(super) fn state(&self) -> LogState {
        let mut state = self.base.clone();
        self.journal.iter().for_each(|journal| follow(&mut state, journal));
        debug_assert!(state.has_one_owner_per_cell(), "a cell belongs to two bees of an app");
        state
    }

    /// The leader leads no longer, and lives on. Returns its journal, which it still has.
    fn is_lost(&mut self) -> Option<Arc<TestJournal>> {
        let journal = self.journal.take()?;
        self.late = journal.lose();
        follow(&mut self.base, &journal);
        Some(journal)
    }

    /// The leader is down.
    pub(super) fn is_abandoned(&mut self) {
        let Some(journal) = self.journal.take() else { return };
        follow(&mut self.base, &journal);
        self.late = journal.take_waiting()
    }
}

impl Cluster {
    /// Returns the colonies that a hive leads, or that it led last, in order.
    pub(super) fn led_by(&self, hive: usize) -> Vec<ColonyId> {
        let all = (1..).map(ColonyId).zip(&self.colonies);
        all.filter(|(_, colony)| colony.leader == hive).map(|(id, _)| id).collect()
    }

    /// Returns the journals of the colonies that a hive leads.
    pub(super) fn journals(&self, hive: usize) -> impl Iterator<Item = &Arc<TestJournal>> {
        let led = self.colonies.iter().filter(move |colony| colony.leader == hive);
        led.filter_map(|colony| colony.journal.as_ref())
    }

    /// Founds colonies that a hive will lead.
    pub(super) fn found(&mut self, hive: usize) {
        let members: Vec<HiveId> = (0..self.hives() as u32).map(HiveId).collect();
        for _ in 0..self.setup.logs_per_hive {
            let after = ColonyId(self.colonies.len() as u32);
            self.registry.decide(&[Proposal::Found { after, members: members.clone(), is_replicated: true }]);
            let (base, late) = Default::default();
            self.colonies.push(Colony { base, late, leader: hive, journal: None })
        }
    }

    /// Begins a term in the log of a colony, which a hive will lead.
    #[track_caller]
    pub(super) fn begin_term(&mut self, colony: ColonyId, hive: usize) -> (Arc<TestJournal>, LogState) {
        let at = colony.0 as usize - 1;
        if let Some(followers) = &self.members[hive].followers {
            followers.has_all_of(colony)
        }
        // a quarantined message blocks its thread until its crash marker is committed, and here the journal commits on the
        // same thread
        let mut state = LogState { marker: None, ..self.colonies[at].state() };
        self.journals += 1;
        let seed = self.seed.wrapping_mul(31).wrapping_add(self.journals);
        let EntryNumber(last) = state.last;
        let member = &self.members[hive];
        let followers = member.followers.clone();
        let told = Told { log: self.log.clone(), hive: HiveId(hive as u32), colony, followers };
        let journal = TestJournal::on(&member.process, told, seed, self.setup.refuse_one_in, last);
        journal.slow_down(member.disk_delay);
        let led = &mut self.colonies[at];
        let late = std::mem::take(&mut led.late);
        (led.leader, led.journal) = (hive, Some(journal.clone()));
        self.late += late.len();
        journal.begin_with(state.begin_term(state.last.term() + 1), late);
        (journal, state)
    }

    /// Deposes the leader of a colony, which goes on running, and lets another hive lead the colony in the next term, or the same
    /// one again. Some of the entries in flight are committed, and the old leader is not told of them; the others arrive in the
    /// log behind the first entry of the new term, and have no effect. Lets time pass until the new leader leads.
    ///
    /// The old leader is told at once that it leads no longer: see
    /// [`JournalEvents::deposed`](crate::journal::JournalEvents::deposed).
    ///
    /// # Panics
    ///
    /// Panics if nobody leads the colony, if the new leader is down, or if it does not accept the log.
    #[track_caller]
    pub fn depose(&mut self, colony: ColonyId, by: usize) {
        self.depose_or_not(colony, by, true)
    }

    /// Same as [`Cluster::depose`], but the old leader is not told. It goes on handling and sending messages, and its journal
    /// commits nothing more. It learns of the next leader from its replica of the registry, or from [`Cluster::tell_deposed`].
    /// If the hive is to lead the colony again, it is told first.
    ///
    /// # Panics
    ///
    /// Panics like `depose`.
    #[track_caller]
    pub fn depose_untold(&mut self, colony: ColonyId, by: usize) {
        self.depose_or_not(colony, by, false)
    }

    #[track_caller]
    fn depose_or_not(&mut self, colony: ColonyId, by: usize, is_told: bool) {
        let old = self.leader(colony);
        let how = if is_told { "" } else { ", and is not told" };
        self.hit(FaultKind::Depose, Some(old), &format!("deposed: hive {by} leads {colony}{how}"));
        let journal = self.lose_colony(colony);
        match is_told || old == by {
            true => journal.tell_deposed(),
            false => self.untold.push(journal),
        }
        self.lead_again(colony, by)
    }

    /// Tells all leaders that were deposed without being told.
    pub fn tell_deposed(&mut self) {
        self.untold.drain(..).for_each(|journal| journal.tell_deposed())
    }

    /// Returns the hive that leads a colony, or that led it last.
    ///
    /// # Panics
    ///
    /// Panics if there is no such colony.
    #[track_caller]
    pub fn leader(&self, colony: ColonyId) -> usize {
        self.colonies[colony.0 as usize - 1].leader
    }

    /// Returns the colonies that have a leader, in order.
    pub fn led_colonies(&self) -> Vec<ColonyId> {
        let all = (1..).map(ColonyId).zip(&self.colonies);
        all.filter(|(_, colony)| colony.journal.is_some()).map(|(id, _)| id).collect()
    }

    #[track_caller]
    fn lose_colony(&mut self, colony: ColonyId) -> Arc<TestJournal> {
        match self.colonies[colony.0 as usize - 1].is_lost() {
            Some(journal) => journal,
            None => panic!("nobody leads colony {}", colony.0),
        }
    }

    /// Lets a hive lead a colony whose leader has lost it.
    #[track_caller]
    fn lead_again(&mut self, colony: ColonyId, by: usize) {
        let leader = self.hive(by).clone();
        let (journal, state) = self.begin_term(colony, by);
        let led = self.settle(leader.lead(colony, state.last.term(), journal, state));
        if let Err(error) = led {
            panic!("hive {by} does not lead colony {}: {error}", colony.0)
        }
    }

    /// Lets a hive take over all colonies that a dead one led, and lets time pass until it leads them. What the dead hive
    /// appended and was not committed arrives in the logs behind the first entries of the new terms, and has no effect. The
    /// registry is told that the hive is dead. The hive may start again, with new colonies.
    ///
    /// # Panics
    ///
    /// Panics if the dead hive runs, if the other one is down, or if it does not accept a log.
    #[track_caller]
    pub fn take_over(&mut self, dead: usize, by: usize) {
        self.take_over_with(dead, by, |_| ())
    }

    /// Same as [`Cluster::take_over`], after `change` has changed the states of the logs.
    #[track_caller]
    pub fn take_over_with(&mut self, dead: usize, by: usize, change: impl Fn(&mut LogState)) {
        assert!(!self.is_running(dead), "hive {dead} runs");
        self.tell(Kind::Fault, Some(by), format_args!("takes over from hive {dead}"));
        let (hive, incarnation) = (HiveId(dead as u32), self.members[dead].incarnation);
        self.registry.decide(&[Proposal::HiveDead { hive, incarnation }]);
        let leader = self.hive(by).clone();
        for colony in self.led_by(dead) {
            let (journal, mut state) = self.begin_term(colony, by);
            change(&mut state);
            let led = self.settle(leader.lead(colony, state.last.term(), journal, state));
            if let Err(error) = led {
                panic!("hive {by} does not lead colony {}: {error}", colony.0)
            }
        }
    }
}
