//! Directed tests of rules that random walks rarely reach: a late copy of a bee or of a message arrives, or a floor is too
//! high. Each test takes the rule to break. Without one it passes, and the table in `walk.rs` checks that with it a
//! checker fails.

use crate::checks::Emission;
use crate::mutant::Mutant;
use crate::world::{Packet, World, id};
use beehive_protocol::{
    AppId, BeeId, CellId, Decision, LaneId, Leader, Proposal, Record, Seq, Step, release, split,
};
use std::collections::BTreeSet;

pub(crate) const APP: AppId = AppId(0);
const SOURCE: CellId = CellId(0);
pub(crate) const CELL: CellId = CellId(1);
const OTHER: CellId = CellId(2);
const THIRD: CellId = CellId(3);

impl World {
    /// Gives cells to one bee, and returns it.
    pub(crate) fn claim(&mut self, cells: &[CellId], colony: usize) -> BeeId {
        let cells = cells.iter().copied().collect();
        let decision = self.decide(&Proposal::Claim { app: APP, cells, colony: id(colony) });
        let Some(Decision::Owner { root, .. }) = decision else { panic!("{decision:?}") };
        root
    }

    fn learn(&mut self) {
        let newest = self.registry.len() - 1;
        self.hives.iter_mut().for_each(|hive| hive.view = newest)
    }

    /// All replicas learn everything, and all leaders do what follows; nothing is sent.
    pub(crate) fn follow(&mut self) {
        for _ in 0..4 {
            self.learn();
            for colony in 0..self.colonies.len() {
                self.settle(colony);
            }
            for packet in std::mem::take(&mut self.net) {
                if let Packet::Propose(proposal) = packet
                    && !matches!(proposal, Proposal::Claim { .. })
                {
                    self.decide(&proposal);
                }
            }
        }
        self.check()
    }

    /// As `follow`, and all bees take the cells that the registry gives them.
    fn begin(&mut self) {
        self.follow();
        (0..self.colonies.len()).for_each(|colony| self.take_given(colony));
        self.net.clear()
    }

    /// A leader appends all records that follow, and says nothing.
    fn append_steps(&mut self, colony: usize) {
        self.learn();
        loop {
            let (log, view) = (self.colonies[colony].committed.clone(), self.newest().clone());
            let mut all = self.steps_of(colony, &log, &view, &BTreeSet::new()).into_iter();
            let Some(step) = all.find(|step| matches!(step, Step::Append(_))) else { return };
            self.take(colony, &log, step);
            self.commit_all(colony)
        }
    }

    pub(crate) fn commit_all(&mut self, colony: usize) {
        while self.colonies[colony].office.as_ref().is_some_and(|office| !office.tail.is_empty()) {
            self.commit(colony)
        }
    }

    fn deliver_all(&mut self) {
        for packet in std::mem::take(&mut self.net) {
            self.deliver(packet)
        }
    }

    /// The bee with the source cell sends a message. It is not committed yet.
    fn emit_to(&mut self, sender: BeeId, app: AppId, cell: CellId, empties: bool) {
        let tag = self.history.next_tag();
        let emission = Emission { tag, app, source: (APP, SOURCE), cells: vec![cell] };
        self.send_one(0, (APP, sender), emission, empties)
    }

    /// The leader sends the only message in its outbox. Returns the packet.
    fn only_packet(&mut self, colony: usize) -> Packet {
        let log = self.colonies[colony].committed.clone();
        self.transmit_all(colony, &log);
        let sent = std::mem::take(&mut self.net);
        let [packet] = &sent[..] else { panic!("one message, not {sent:?}") };
        packet.clone()
    }

    /// A bee splits off a cell. Returns the new bee.
    pub(crate) fn split_off(&mut self, colony: usize, bee: BeeId, cell: CellId) -> BeeId {
        let view = self.newest().clone();
        let leader = Leader { colony: id(colony), log: &self.colonies[colony].committed, view: &view };
        let keys = vec![(0, crate::messages::key_of(cell))];
        let record = split(leader, APP, bee, vec![cell], keys).expect("the bee may split");
        let Record::Split { new, .. } = record else { panic!("{record:?}") };
        self.append(colony, record, None, Vec::new());
        self.commit_all(colony);
        new
    }

    /// A bee has to move, and is frozen. Returns the parts of its copy.
    fn copy_of(&mut self, bee: BeeId, from: usize, to: usize) -> Vec<Packet> {
        let epoch = self.newest().bee(bee).expect("it exists").epoch;
        self.decide(&Proposal::Aim { bee, epoch, colony: id(to) });
        self.append_steps(from);
        let log = self.colonies[from].committed.clone();
        self.take(from, &log, Step::Send { app: APP, bee, to: id(to) });
        std::mem::take(&mut self.net)
    }

    fn first_part_of(&mut self, bee: BeeId, from: usize, to: usize) -> Packet {
        let copy = self.copy_of(bee, from, to);
        assert!(copy.len() > 1, "{copy:?}");
        copy[0].clone()
    }

    fn release_of(&self, colony: usize, bee: BeeId) -> Option<Record> {
        let view = self.newest().clone();
        release(Leader { colony: id(colony), log: &self.colonies[colony].committed, view: &view }, APP, bee)
    }

    /// A bee ends, unless it may not.
    fn release_if_over(&mut self, colony: usize, bee: BeeId) -> bool {
        let record = self.release_of(colony, bee);
        let is_over = record.is_some();
        record.into_iter().for_each(|record| self.append(colony, record, None, Vec::new()));
        self.commit_all(colony);
        is_over
    }
}

/// Returns a cluster of two colonies, in which no bee sends a message by itself.
pub(crate) fn quiet(mutant: Option<Mutant>) -> World {
    let mut world = World::new(7, 2, mutant);
    world.budget = 0;
    world
}

/// Returns a cluster with a bee of the first colony, which sends, and one of the second colony, which has `cells`.
fn pair(mutant: Option<Mutant>, cells: &[CellId]) -> (World, BeeId, BeeId) {
    let mut world = quiet(mutant);
    let (sender, receiver) = (world.claim(&[SOURCE], 0), world.claim(cells, 1));
    world.begin();
    (world, sender, receiver)
}

/// A bee sends a message to a bee of another colony, which handles it and ends. The message is acknowledged after the
/// sender's leader was deposed, which does not know it. The cell then has a new bee. Returns a late copy of the message.
fn a_cell_with_a_new_bee(mutant: Option<Mutant>) -> (World, Packet) {
    let (mut world, sender, receiver) = pair(mutant, &[CELL]);
    world.emit_to(sender, APP, CELL, true);
    world.commit_all(0);
    let packet = world.only_packet(0);
    world.deliver(packet.clone());
    world.commit_all(1);
    world.elect(0, 1);
    world.deliver_all();
    world.commit_all(0);
    assert!(world.colonies[0].committed.outbox.is_empty(), "the message is acknowledged");

    // the receiver learns that the message is not sent again, and ends
    world.tell_floor(0, LaneId::of_bee(APP, sender), receiver);
    world.deliver_all();
    world.commit_all(1);
    assert!(world.release_if_over(1, receiver), "the bee may end");
    world.follow();
    assert!(world.claim(&[CELL], 1) != receiver);
    world.begin();
    (world, packet)
}

/// A message for a bee that has ended does not reach the new bee of its cell.
pub(crate) fn late_copy(mutant: Option<Mutant>) {
    let (mut world, packet) = a_cell_with_a_new_bee(mutant);
    world.deliver(packet);
    world.commit_all(1);
    world.rest()
}

/// A deposed leader does not address by what it has learned since.
pub(crate) fn deposed_leader(mutant: Option<Mutant>) {
    let (mut world, _) = a_cell_with_a_new_bee(mutant);
    assert_eq!(world.colonies[0].deposed.len(), 1);
    for _ in 0..20 {
        world.work_of_deposed(0);
        world.deliver_all();
        world.commit_all(1)
    }
    world.rest()
}

/// A bee moves, and then merges or ends. Until the registry knows it, a late copy of the bee looks new.
pub(crate) fn late_stage(mutant: Option<Mutant>, merges: bool) {
    let mut world = quiet(mutant);
    let (other, bee) = (world.claim(&[OTHER], 1), world.claim(&[CELL], 0));
    world.begin();
    let copy = world.copy_of(bee, 0, 1);
    let arrive = |world: &mut World| {
        for part in copy.clone() {
            world.deliver(part);
            world.commit_all(1)
        }
    };
    arrive(&mut world);
    world.follow();
    assert!(world.colonies[1].committed.is_active(APP, bee), "the bee has moved");

    match merges {
        true => {
            assert_eq!(world.claim(&[CELL, OTHER], 1), other);
            world.append_steps(1)
        }
        false => assert!(world.release_if_over(1, bee), "the bee may end"),
    }
    assert!(!world.colonies[1].committed.is_active(APP, bee) && world.newest().bee(bee).is_some());
    arrive(&mut world);
    world.append_steps(1);
    world.rest()
}

/// A number goes to a message for one app, the record is refused, and a message for another app gets the number. A floor
/// for that app that was stated in between must not pass it.
pub(crate) fn speculative_floor(mutant: Option<Mutant>) {
    let (mut world, sender, receiver) = pair(mutant, &[CELL]);
    world.emit_to(sender, APP, CELL, false);
    world.commit_all(0);
    let packet = world.only_packet(0);
    world.deliver(packet);
    world.commit_all(1);
    world.deliver_all();
    world.commit_all(0);

    world.emit_to(sender, AppId(1), CELL, false);
    world.tell_floor(0, LaneId::of_bee(APP, sender), receiver);
    world.refuse(0);
    world.deliver_all();
    world.commit_all(1);
    world.emit_to(sender, APP, CELL, false);
    world.commit_all(0);
    let next = world.colonies[0].committed.outbox.keys().map(|id| id.seq).collect::<Vec<_>>();
    assert_eq!(next, [Seq(1)], "the number is used again");
    world.rest()
}

/// An acknowledgment arrives, and the record of it is refused. The message is sent again, so its receiver must not end.
pub(crate) fn volatile_ack(mutant: Option<Mutant>) {
    let (mut world, sender, receiver) = pair(mutant, &[CELL]);
    world.emit_to(sender, APP, CELL, true);
    world.commit_all(0);
    let packet = world.only_packet(0);
    world.deliver(packet);
    world.commit_all(1);
    world.deliver_all();
    world.refuse(0);
    assert_eq!(world.colonies[0].committed.outbox.len(), 1);

    world.tell_floor(0, LaneId::of_bee(APP, sender), receiver);
    world.deliver_all();
    world.commit_all(1);
    if world.release_if_over(1, receiver) {
        world.follow();
        world.claim(&[CELL], 1);
        world.begin()
    }
    world.rest()
}

/// A message is on its way to a bee that gives away the message's cell.
pub(crate) fn stale_route(mutant: Option<Mutant>) {
    let (mut world, sender, receiver) = pair(mutant, &[CELL, OTHER]);
    world.emit_to(sender, APP, OTHER, false);
    world.commit_all(0);
    let packet = world.only_packet(0);
    world.split_off(1, receiver, OTHER);
    world.follow();
    world.deliver(packet);
    world.commit_all(1);
    world.check();
    world.rest()
}

/// A bee handles a message, and gives away the message's cell before the sender knows. The message is sent to the new bee.
pub(crate) fn split_after_message(mutant: Option<Mutant>) {
    let (mut world, sender, receiver) = pair(mutant, &[CELL, OTHER]);
    world.emit_to(sender, APP, OTHER, false);
    world.commit_all(0);
    let packet = world.only_packet(0);
    world.deliver(packet);
    world.commit_all(1);
    world.net.clear();
    world.split_off(1, receiver, OTHER);
    world.rest()
}

/// A bee splits, and the two merge again. A late proposal about the split must not split them.
pub(crate) fn late_split(mutant: Option<Mutant>) {
    let (mut world, _, bee) = pair(mutant, &[CELL, OTHER, THIRD]);
    let new = world.split_off(1, bee, THIRD);
    world.settle(1);
    let is_split = |packet: &Packet| matches!(packet, Packet::Propose(Proposal::Split { .. }));
    let late = world.net.iter().find(|packet| is_split(packet)).cloned().expect("the registry is told");
    world.follow();
    assert_eq!(world.newest().owner(APP, THIRD), Some(new));
    assert_eq!(world.claim(&[CELL, THIRD], 1), bee);
    world.follow();
    assert_eq!(world.newest().owner(APP, THIRD), Some(bee));
    world.deliver(late);
    world.rest()
}

/// Part of the copy of a bee has arrived when the lane ends on which the bee has handled a message.
pub(crate) fn lane_ends_during_move(mutant: Option<Mutant>) {
    let (mut world, sender, bee) = pair(mutant, &[CELL]);
    world.emit_to(sender, APP, CELL, false);
    world.commit_all(0);
    let packet = world.only_packet(0);
    world.deliver(packet);
    world.commit_all(1);
    world.deliver_all();
    world.commit_all(0);

    let first = world.first_part_of(bee, 1, 0);
    world.deliver(first);
    world.commit_all(0);
    assert!(world.release_if_over(0, sender), "the bee may end");
    world.follow();
    assert!(world.newest().is_retired(LaneId::of_bee(APP, sender)));
    world.rest();
    assert!(world.colonies[0].committed.is_active(APP, bee), "the bee has moved")
}

/// Part of the copy of a bee has arrived when a bee of its old log handles a message of it.
pub(crate) fn local_message_during_move(mutant: Option<Mutant>) {
    let mut world = quiet(mutant);
    let bee = world.claim(&[SOURCE], 0);
    world.claim(&[CELL], 0);
    world.begin();
    world.emit_to(bee, APP, CELL, false);
    world.commit_all(0);
    let packet = world.only_packet(0);
    let first = world.first_part_of(bee, 0, 1);
    world.deliver(first);
    world.deliver(packet);
    (0..2).for_each(|colony| world.commit_all(colony));
    assert_eq!(world.history.counts(), (1, 1), "the message is handled");
    world.rest();
    assert!(world.colonies[1].committed.is_active(APP, bee), "the bee has moved")
}
