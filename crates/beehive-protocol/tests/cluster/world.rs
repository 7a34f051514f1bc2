//! The cluster, and what happens to it: proposals are decided, packets arrive, entries are committed or refused, leaders are
//! deposed and hives crash.

use crate::checks::{Emission, History};
use crate::mutant::{Kind, Mutant, kind};
use crate::partial;
use beehive_protocol::{
    AppId, BeeId, CellId, ColonyId, Decision, Entry, EntryNumber, Epoch, HiveId, LaneId, LogState, MessageId,
    Part, Proposal, Record, RegistryState, Seq, StageFrame,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Arguments, Write};
use std::rc::Rc;

pub(crate) const APPS: u16 = 2;
pub(crate) const CELLS: u64 = 4;
const HIVES: usize = 3;
/// Maximum number of packets in the network; more are lost.
const PACKETS_MAX: usize = 48;
/// Number of ids reserved for a colony at once.
const RESERVED: u32 = 4;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 20) % bound.max(1) as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).cloned()
    }
}

/// A message on the wire, or in an outbox.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) lane: LaneId,
    pub(crate) seq: Seq,
    pub(crate) app: AppId,
    /// What the test knows it as.
    pub(crate) tag: u32,
    pub(crate) cells: Vec<CellId>,
    /// Earlier messages to the same cells.
    pub(crate) after: Vec<(LaneId, Seq)>,
    /// Whether it empties its cells.
    pub(crate) empties: bool,
}

impl Message {
    pub(crate) fn id(&self) -> MessageId {
        MessageId { lane: self.lane, seq: self.seq, part: Part::WHOLE, app: self.app }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Propose(Proposal),
    Frame(StageFrame),
    Message { colony: ColonyId, to: BeeId, floor: Seq, message: Message },
    Ack { colony: ColonyId, id: MessageId, by: BeeId },
    Floor { colony: ColonyId, app: AppId, to: BeeId, lane: LaneId, floor: Seq },
}

/// An entry, and what the test knows about it.
#[derive(Clone)]
pub(crate) struct Proposed {
    pub(crate) entry: Entry,
    /// The message that it consumes.
    pub(crate) handled: Option<Message>,
    /// The messages that it emits.
    pub(crate) emitted: Vec<Emission>,
}

/// The office of a hive that leads a colony, or believes that it does.
pub(crate) struct Office {
    pub(crate) hive: usize,
    /// The number of its last entry.
    pub(crate) newest: u64,
    /// The state after everything that it has executed.
    pub(crate) state: LogState,
    /// What is not committed.
    pub(crate) tail: Vec<Proposed>,
    /// Acknowledgments that have arrived.
    pub(crate) acked: BTreeSet<MessageId>,
}

/// A leader that was deposed and was not told.
pub(crate) struct Deposed {
    pub(crate) hive: usize,
    /// What was committed as far as it knows.
    pub(crate) state: LogState,
    /// Its replica of the registry when its office was last confirmed.
    pub(crate) view: usize,
}

#[derive(Default)]
pub(crate) struct Colony {
    pub(crate) committed: LogState,
    pub(crate) term: u64,
    pub(crate) office: Option<Office>,
    pub(crate) deposed: Vec<Deposed>,
    /// Entries that were refused, or whose leader was deposed. They may still arrive.
    pub(crate) late: Vec<Proposed>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Hive {
    /// Its replica, as a position in `World::registry`.
    pub(crate) view: usize,
    /// Whether nothing reaches it.
    pub(crate) is_cut: bool,
}

pub(crate) struct World {
    pub(crate) mutant: Option<Mutant>,
    pub(crate) random: Random,
    /// The registry after each proposal that had an effect.
    pub(crate) registry: Vec<Rc<RegistryState>>,
    pub(crate) hives: Vec<Hive>,
    pub(crate) colonies: Vec<Colony>,
    pub(crate) net: Vec<Packet>,
    pub(crate) history: History,
    /// Number of messages that may still be emitted.
    pub(crate) budget: u32,
    /// What happened, if somebody asked.
    pub(crate) trace: Option<String>,
    /// Counts of steps, by name.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// The copies of bees that were sent, by bee and epoch.
    pub(crate) copies: BTreeMap<(BeeId, Epoch), u64>,
    /// The copies to which the staged parts belong, as far as the leaders of the colonies know.
    pub(crate) staging: BTreeMap<(usize, BeeId), u64>,
}

pub(crate) fn id(colony: usize) -> ColonyId {
    ColonyId(colony as u32 + 1)
}

pub(crate) fn at(colony: ColonyId) -> usize {
    colony.0 as usize - 1
}

impl World {
    pub(crate) fn new(seed: u64, colonies: usize, mutant: Option<Mutant>) -> World {
        let mut registry = RegistryState::default();
        for after in 0..colonies as u32 {
            let members = (0..HIVES as u32).map(HiveId).collect();
            registry.apply(&Proposal::Found { after: ColonyId(after), members, is_replicated: true });
            let colony = ColonyId(after + 1);
            registry.apply(&Proposal::Reserve { colony, after: BeeId(0), count: RESERVED });
        }
        let mut world = World {
            mutant,
            random: Random(seed | 1),
            registry: vec![Rc::new(registry)],
            hives: vec![Hive::default(); HIVES],
            colonies: (0..colonies).map(|_| Colony::default()).collect(),
            net: Vec::new(),
            history: History::default(),
            budget: 60,
            trace: None,
            counts: BTreeMap::new(),
            copies: BTreeMap::new(),
            staging: BTreeMap::new(),
        };
        (0..colonies).for_each(|colony| world.elect(colony, colony % HIVES));
        world
    }

    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub(crate) fn note(&mut self, what: &'static str, details: Arguments<'_>) {
        *self.counts.entry(what).or_default() += 1;
        if let Some(trace) = &mut self.trace {
            writeln!(trace, "{what} {details}").expect("a string takes all text")
        }
    }

    pub(crate) fn newest(&self) -> &Rc<RegistryState> {
        self.registry.last().expect("there is a first state")
    }

    pub(crate) fn view_of(&self, hive: usize) -> Rc<RegistryState> {
        self.registry[self.hives[hive].view].clone()
    }

    /// Returns the hive that leads a colony, unless nothing reaches it.
    pub(crate) fn leader(&self, colony: usize) -> Option<usize> {
        self.colonies[colony]
            .office
            .as_ref()
            .map(|office| office.hive)
            .filter(|hive| !self.hives[*hive].is_cut)
    }

    pub(crate) fn send(&mut self, packet: Packet) {
        if self.net.len() >= PACKETS_MAX {
            let lost = self.random.below(self.net.len());
            self.net.swap_remove(lost);
        }
        self.net.push(packet)
    }

    /// Decides a proposal.
    pub(crate) fn decide(&mut self, proposal: &Proposal) -> Option<Decision> {
        let mut next = RegistryState::clone(self.newest());
        let mut proposal = proposal.clone();
        let mut kept = None;
        if let Proposal::Commit { bee, epoch, .. } = &mut proposal
            && let Some(entry) = next.bee(*bee)
        {
            if self.is(Mutant::CommitIgnoresEpoch) {
                *epoch = entry.epoch
            }
            kept = self.is(Mutant::EpochReused).then_some((*bee, entry.epoch))
        }
        if let Proposal::Split { bee, new, .. } = &proposal
            && self.is(Mutant::SplitIdReused)
            && let Some(entry) = next.bee(*bee)
            && next.bee(*new).is_none()
            && !next.is_reserved(*new)
        {
            // the registry has forgotten that the id was used
            let mut image = serde_json::to_value(&next).expect("a state is plain data");
            image["reserved"][new.0.to_string()] = entry.colony.0.into();
            next = serde_json::from_value(image).expect("the id is free")
        }
        let decision = next.apply(&proposal);
        if let Decision::Void { .. } = decision {
            return None;
        }
        if let Some((bee, epoch)) = kept {
            let mut image = serde_json::to_value(&next).expect("a state is plain data");
            image["bees"][bee.0.to_string()]["epoch"] = epoch.0.into();
            next = serde_json::from_value(image).expect("an epoch is free")
        }
        self.note("decided", format_args!("{proposal:?}"));
        assert_eq!(next.check(), Ok(()), "{proposal:?}");
        self.registry.push(Rc::new(next));
        Some(decision)
    }

    /// Applies an entry to a state of a log. Returns whether it took effect.
    pub(crate) fn apply(&self, state: &mut LogState, entry: &Entry) -> bool {
        let is_work = matches!(entry.record, Record::Turn(_));
        let ignores = self.is(Mutant::PredecessorIgnored) || self.is(Mutant::OnlyWorkNumbered) && !is_work;
        if ignores && entry.after != state.last {
            if entry.number <= state.last {
                state.carry_out(&entry.record);
                return true;
            }
            state.last = entry.after
        }
        let (known, before) = (state.known, self.mutant.map(|_| state.clone()));
        if self.mutant.is_none() && entry.after == state.last {
            partial::apply(state, entry);
            return true;
        }
        if !state.apply(entry) {
            return false;
        }
        let Some((mutant, before)) = self.mutant.zip(before) else { return true };
        match (mutant, &entry.record) {
            (Mutant::Unfenced(of), record) if Some(of) == kind(record) => state.known = known,
            (
                Mutant::ReleaseToldUnfenced,
                Record::Told { what: beehive_protocol::Untold::Released { .. }, .. },
            ) => state.known = known,
            (Mutant::DedupNotMerged, Record::Fuse { app, into, .. }) => {
                if let Some(image) = state.bees.get_mut(&(*app, *into)) {
                    image.seen =
                        before.bees.get(&(*app, *into)).map(|image| image.seen.clone()).unwrap_or_default()
                }
            }
            (Mutant::OutboxNotMerged, Record::Fuse { app, from, .. }) => {
                let lane = LaneId::of_bee(*app, *from);
                state.outbox.retain(|id, _| id.lane != lane)
            }
            (Mutant::SplitDedupNotCopied, Record::Split { app, new, .. }) => {
                if let Some(image) = state.bees.get_mut(&(*app, *new)) {
                    image.seen = Default::default()
                }
            }
            (Mutant::LocalTakesFrozen, Record::Turn(works)) => {
                for work in works {
                    for input in work.inputs.iter().filter(|input| state.frozen.contains(&input.lane)) {
                        input.messages().for_each(|(seq, part)| {
                            state.outbox.remove(&MessageId { lane: input.lane, seq, part, app: work.app });
                        })
                    }
                }
            }
            _ => {}
        }
        true
    }

    /// Executes a record on the leader's state, and proposes it to the log.
    pub(crate) fn append(
        &mut self,
        colony: usize,
        record: Record,
        handled: Option<Message>,
        emitted: Vec<Emission>,
    ) {
        let Some(office) = &mut self.colonies[colony].office else { return };
        office.newest += 1;
        let entry = Entry { number: EntryNumber(office.newest), after: office.state.last, record };
        let mut state = std::mem::take(&mut office.state);
        if let Some(trace) = &mut self.trace {
            writeln!(trace, "append {} {entry:?}", id(colony)).expect("a string takes all text")
        }
        if let Some(kind) = kind(&entry.record) {
            *self.counts.entry(name(kind)).or_default() += 1
        }
        self.history.one_change_at_a_time(&state, &entry.record);
        assert!(self.apply(&mut state, &entry), "the leader executes on its own state");
        if let Some(office) = &mut self.colonies[colony].office {
            office.state = state;
            office.tail.push(Proposed { entry, handled, emitted })
        }
    }

    /// An entry arrives in the log of a colony.
    fn arrive(&mut self, colony: usize, proposed: &Proposed) -> bool {
        let mut state = std::mem::take(&mut self.colonies[colony].committed);
        let has_effect = self.apply(&mut state, &proposed.entry);
        self.colonies[colony].committed = state;
        if has_effect {
            self.note("committed", format_args!("{} {:?}", id(colony), proposed.entry.number));
            self.committed(colony, proposed)
        }
        has_effect
    }

    /// Commits the first entry of the leader's tail.
    pub(crate) fn commit(&mut self, colony: usize) {
        if self.leader(colony).is_none() {
            return;
        }
        let Some(office) = &mut self.colonies[colony].office else { return };
        if office.tail.is_empty() {
            return;
        }
        let proposed = office.tail.remove(0);
        if self.arrive(colony, &proposed) {
            self.acknowledge(colony, &proposed)
        } else {
            self.drop_tail(colony, 0)
        }
    }

    /// The leader drops its tail and executes anew, on what is committed.
    fn drop_tail(&mut self, colony: usize, reused: u64) {
        let Colony { committed, office, late, .. } = &mut self.colonies[colony];
        let Some(office) = office else { return };
        late.append(&mut office.tail);
        office.state = committed.clone();
        office.newest -= reused
    }

    /// The log refuses the first entry of the tail. Those after it may arrive.
    pub(crate) fn refuse(&mut self, colony: usize) {
        let Some(office) = &mut self.colonies[colony].office else { return };
        if office.tail.is_empty() {
            return;
        }
        let refused = office.tail.remove(0);
        let reused = if self.is(Mutant::NumberReused) { self.colonies[colony].dead() + 1 } else { 0 };
        self.note("refused", format_args!("{} {:?}", id(colony), refused.entry.number));
        self.drop_tail(colony, reused)
    }

    /// A refused entry, or one of an earlier term, arrives late.
    fn late(&mut self, colony: usize) {
        let late = self.colonies[colony].late.len();
        if late == 0 {
            return;
        }
        let chosen = self.random.below(late);
        let proposed = self.colonies[colony].late.swap_remove(chosen);
        if self.arrive(colony, &proposed) && self.colonies[colony].office.is_some() {
            self.drop_tail(colony, 0)
        }
    }

    /// A hive becomes the leader of a colony. The previous leader is not told. Of its tail, some entries may be committed.
    pub(crate) fn elect(&mut self, colony: usize, hive: usize) {
        if let Some(office) = self.colonies[colony].office.take() {
            let state = self.colonies[colony].committed.clone();
            let view = self.hives[office.hive].view;
            let survive = self.random.below(office.tail.len() + 1);
            let mut tail = office.tail;
            let dead = tail.split_off(survive);
            tail.iter().for_each(|proposed| {
                self.arrive(colony, proposed);
            });
            let of = &mut self.colonies[colony];
            of.late.extend(dead);
            of.deposed.push(Deposed { hive: office.hive, state, view })
        }
        // a new leader does not know to which copies the staged parts belong
        self.staging.retain(|(of, _), _| *of != colony);
        let of = &mut self.colonies[colony];
        of.term += 1;
        let term = of.term;
        // the blank entry of the term, which always takes effect
        let (number, after) = (EntryNumber(term << 20), of.committed.last);
        assert!(of.committed.apply(&Entry { number, after, record: Record::Consumed(Vec::new()) }));
        let state = of.committed.clone();
        let (tail, acked) = Default::default();
        of.office = Some(Office { hive, newest: term << 20, state, tail, acked });
        self.note("elected", format_args!("hive {hive} leads {} in term {term}", id(colony)))
    }

    /// A hive ends and begins again, with a replica that may be older.
    fn crash(&mut self, hive: usize) {
        self.note("crashed", format_args!("hive {hive}"));
        for colony in 0..self.colonies.len() {
            let of = &mut self.colonies[colony];
            of.deposed.retain(|deposed| deposed.hive != hive);
            if of.office.as_ref().is_some_and(|office| office.hive == hive) {
                let next = self.random.below(HIVES);
                self.elect(colony, next);
                self.colonies[colony].deposed.retain(|deposed| deposed.hive != hive)
            }
        }
        let view = self.hives[hive].view;
        self.hives[hive].view = view - self.random.below((view + 1).min(12))
    }

    pub(crate) fn step(&mut self) {
        let colony = self.random.below(self.colonies.len());
        let hive = self.random.below(HIVES);
        match self.random.below(240) {
            0..24 if !self.hives[hive].is_cut => {
                let (newest, view) = (self.registry.len() - 1, self.hives[hive].view);
                self.hives[hive].view = view + self.random.below(newest - view + 1)
            }
            24..56 => self.reconcile(colony),
            56..72 => self.emit(colony),
            72..98 => self.transmit_one(colony),
            98..146 if !self.net.is_empty() => {
                let at = self.random.below(self.net.len());
                match self.random.below(10) {
                    0 => {
                        let again = self.net[at].clone();
                        self.deliver(again)
                    }
                    1 => drop(self.net.swap_remove(at)),
                    _ => {
                        let packet = self.net.swap_remove(at);
                        self.deliver(packet)
                    }
                }
            }
            146..176 => self.commit(colony),
            176..181 => self.refuse(colony),
            181..185 => self.late(colony),
            185..194 => self.wish(colony),
            194..206 => self.change(colony),
            206..214 => self.forget(colony),
            214..217 => self.elect(colony, hive),
            217..221 => {
                // a deposed leader learns of it
                self.colonies[colony].deposed.pop();
            }
            221 => self.crash(hive),
            222 => self.hives[hive].is_cut = true,
            223..226 => self.hives[hive].is_cut = false,
            226 => self.net.clear(),
            _ => self.work_of_deposed(colony),
        }
        self.check()
    }

    /// Somebody wishes a bee to move, or cells to have one owner.
    fn wish(&mut self, colony: usize) {
        if self.random.one_in(2) {
            let app = AppId(self.random.below(APPS as usize) as u16);
            let cells = (0..2).map(|_| CellId(self.random.below(CELLS as usize) as u64)).collect();
            return self.send(Packet::Propose(Proposal::Claim { app, cells, colony: id(colony) }));
        }
        let bees: Vec<BeeId> = self.newest().bees_at(id(colony)).collect();
        let to = id(self.random.below(self.colonies.len()));
        if let Some(bee) = self.random.pick(&bees)
            && let Some(entry) = self.newest().bee(bee)
        {
            self.send(Packet::Propose(Proposal::Aim { bee, epoch: entry.epoch, colony: to }))
        }
        let entry = self.newest().colony(id(colony)).map(|entry| entry.newest_reserved);
        if let Some(after) = entry
            && self.newest().reserved(id(colony)).next().is_none()
        {
            self.send(Packet::Propose(Proposal::Reserve { colony: id(colony), after, count: RESERVED }))
        }
    }

    /// I9: without further faults, everything comes to rest.
    pub(crate) fn rest(&mut self) {
        self.hives.iter_mut().for_each(|hive| hive.is_cut = false);
        self.colonies.iter_mut().for_each(|colony| colony.deposed.clear());
        self.net.clear();
        let mut rounds = 0;
        loop {
            let mut is_quiet = true;
            for colony in 0..self.colonies.len() {
                let newest = self.registry.len() - 1;
                self.hives.iter_mut().for_each(|hive| hive.view = newest);
                is_quiet &= self.settle(colony)
            }
            let net = std::mem::take(&mut self.net);
            is_quiet &= net.is_empty();
            net.into_iter().for_each(|packet| self.deliver(packet));
            self.check();
            if is_quiet {
                break;
            }
            rounds += 1;
            assert!(rounds < 80, "I9: no rest: {:?}", self.net)
        }
        self.check_rest()
    }
}

impl Colony {
    /// Number of entries of the tail.
    fn dead(&self) -> u64 {
        self.office.as_ref().map_or(0, |office| office.tail.len() as u64)
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Create => "create",
        Kind::Freeze => "freeze",
        Kind::Stage => "stage",
        Kind::Unstage => "unstage",
        Kind::Adopt => "adopt",
        Kind::Drop => "drop",
        Kind::Thaw => "thaw",
        Kind::Fuse => "fuse",
        Kind::Split => "split",
        Kind::Release => "release",
        Kind::Told => "told",
        Kind::Retire => "retire",
    }
}
