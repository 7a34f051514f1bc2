//! What the leader of a colony does with messages: bees handle and emit them, and the leader sends what is in its outbox,
//! acknowledgments and floors.

use crate::checks::Emission;
use crate::mutant::Mutant;
use crate::world::{APPS, CELLS, Message, Packet, Proposed, World, id};
use beehive_protocol::codec::decode;
use beehive_protocol::{
    Acked, Address, AppId, BeeId, CellId, Consumed, Emit, Emits, HiveId, Input, LaneId, LogState, MessageId,
    MessageTypeId, Op, Part, Payload, Proposal, Record, Redo, RegistryState, Seq, Time, Work,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of executed records that are not committed.
const TAIL_MAX: usize = 3;

pub(crate) fn key_of(cell: CellId) -> Vec<u8> {
    cell.0.to_be_bytes().to_vec()
}

/// Returns the number of messages that a cell has handled since it was last emptied.
pub(crate) fn value_of(log: &LogState, app: AppId, bee: BeeId, cell: CellId) -> u64 {
    let images = log.bees.get(&(app, bee)).into_iter().flat_map(|image| image.state.images());
    let rows = images.filter(|image| image.key == key_of(cell)).flat_map(|image| image.rows);
    rows.map(|(_, value)| value.first().map_or(0, |value| u64::from(*value))).sum()
}

/// Reads a message in an outbox.
pub(crate) fn message_of(emit: &Emit) -> Message {
    let MessageId { lane, seq, app, .. } = emit.id;
    let (tag, empties, cells, after) = decode("a message", &emit.payload).expect("the test encoded it");
    Message { lane, seq, app, tag, cells, after, empties }
}

/// Returns the lowest number on a lane that is unhandled for an app, or the next one. `next` is known of a lane whose bee
/// exists.
fn floor_of(log: &LogState, lane: LaneId, app: AppId, skipped: &BTreeSet<MessageId>) -> Option<Seq> {
    let mut open = log.outbox.range(MessageId::all_of(lane)).map(|(id, _)| id);
    let open = open.find(|id| id.app == app && !skipped.contains(id)).map(|id| id.seq);
    let next = || Some(log.bees.get(&lane.bee()?)?.next_seq);
    open.or_else(next)
}

impl World {
    /// Returns the record of a bee that handles a message, and emits others.
    fn work(
        &mut self,
        colony: usize,
        (app, bee): (AppId, BeeId),
        handled: Option<(Message, Option<Seq>)>,
        emits: usize,
    ) {
        let Some((state, _)) = self.office(colony) else { return };
        let state = state.clone();
        let image = state.bees[&(app, bee)].clone();
        let mut redo = Redo::default();
        let (mut cells, mut inputs) = (Vec::new(), Vec::new());
        if let Some((message, floor)) = &handled {
            for cell in &message.cells {
                let value = value_of(&state, app, bee, *cell) + 1;
                let value = [value as u8];
                let value = (!message.empties).then_some(&value[..]);
                redo.push(Op { dict: 0, key: &key_of(*cell), row: Some(&[]), value })
            }
            cells = message.cells.iter().copied().filter(|cell| !image.cells.contains(cell)).collect();
            inputs.push(Input {
                lane: message.lane,
                floor: *floor,
                seq: message.seq,
                count: 1,
                part: Part::WHOLE,
            })
        }

        // new messages, each from one of the bee's cells
        let lane = LaneId::of_bee(app, bee);
        let own: Vec<CellId> = image.cells.iter().copied().chain(cells.iter().copied()).collect();
        let (mut next_seq, mut sent, mut emissions) = (image.next_seq, Emits::default(), Vec::new());
        let lanes = state.lanes_of(app, bee);
        for _ in 0..emits {
            let Some(source) = self.random.pick(&own) else { break };
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            let tag = self.history.next_tag();
            let first = self.random.below(APPS as usize) as u16;
            let both = self.random.one_in(3);
            for to in (0..APPS).filter(|to| *to == first || both).map(AppId) {
                let count = if self.random.one_in(4) { 2 } else { 1 };
                let cells: BTreeSet<CellId> =
                    (0..count).map(|_| CellId(self.random.below(CELLS as usize) as u64)).collect();
                let cells: Vec<CellId> = cells.into_iter().collect();
                let empties = self.random.one_in(2);
                let waiting = state.outbox.values().map(|waiting| &waiting.emit).chain(&sent.0);
                let waiting = waiting.filter(|emit| emit.id.app == to && lanes.contains(&emit.id.lane));
                let before = waiting
                    .map(message_of)
                    .filter(|earlier| earlier.cells.iter().any(|cell| cells.contains(cell)));
                let after: Vec<(LaneId, Seq)> = before.map(|earlier| (earlier.lane, earlier.seq)).collect();
                let id = MessageId { lane, seq: next_seq, part: Part::WHOLE, app: to };
                sent.push(emit_of(id, Payload::of(&(tag, empties, &cells, &after))));
                emissions.push(Emission { tag, app: to, source: (app, source), cells })
            }
            next_seq = next_seq.next()
        }
        let work = Work {
            app,
            bee,
            cells,
            inputs: inputs.into(),
            visits: Vec::new(),
            redo,
            emits: sent,
            next_seq,
            now: Time::ZERO,
        };
        let handled = handled.map(|(message, _)| message);
        self.append(colony, Record::Turn(vec![Arc::new(work)]), handled, emissions)
    }

    /// A bee emits messages on its own, as for a timer.
    pub(crate) fn emit(&mut self, colony: usize) {
        let Some((state, view)) = self.office(colony) else { return };
        if view.index() < state.known || self.is_full(colony) {
            return;
        }
        let state = state.clone();
        let active = state.bees.iter().filter(|(_, image)| !image.is_frozen());
        let active: Vec<_> = active.map(|(bee, _)| *bee).collect();
        let Some((app, bee)) = self.random.pick(&active) else {
            // the first bees begin with a message from outside
            let cells = [CellId(self.random.below(CELLS as usize) as u64)].into_iter().collect();
            let app = AppId(self.random.below(APPS as usize) as u16);
            return self.send(Packet::Propose(Proposal::Claim { app, cells, colony: id(colony) }));
        };
        // a bee takes the cells that the registry gives it, as for a message from outside
        let given = view.cells_of(bee).filter(|cell| !holds(&state, app, *cell)).collect::<Vec<_>>();
        if given.is_empty() {
            let count = 1 + self.random.below(2);
            return self.work(colony, (app, bee), None, count);
        }
        let work = Work {
            app,
            bee,
            cells: given,
            inputs: Default::default(),
            visits: Vec::new(),
            redo: Redo::default(),
            emits: Emits::default(),
            next_seq: state.bees[&(app, bee)].next_seq,
            now: Time::ZERO,
        };
        self.append(colony, Record::Turn(vec![Arc::new(work)]), None, Vec::new())
    }

    /// A bee sends one message, for a directed test.
    pub(crate) fn send_one(
        &mut self,
        colony: usize,
        (app, bee): (AppId, BeeId),
        emission: Emission,
        empties: bool,
    ) {
        let Some((state, _)) = self.office(colony) else { return };
        let (lane, seq) = (LaneId::of_bee(app, bee), state.bees[&(app, bee)].next_seq);
        let after: Vec<(LaneId, Seq)> = state.outbox.keys().map(|id| (id.lane, id.seq)).collect();
        let id = MessageId { lane, seq, part: Part::WHOLE, app: emission.app };
        let payload = Payload::of(&(emission.tag, empties, &emission.cells, &after));
        let work = Work {
            app,
            bee,
            cells: vec![emission.source.1].into_iter().filter(|cell| !holds(state, app, *cell)).collect(),
            inputs: Default::default(),
            visits: Vec::new(),
            redo: Redo::default(),
            emits: [emit_of(id, payload)].into_iter().collect(),
            next_seq: seq.next(),
            now: Time::ZERO,
        };
        self.append(colony, Record::Turn(vec![Arc::new(work)]), None, vec![emission])
    }

    /// All bees of a colony take the cells that the registry gives them.
    pub(crate) fn take_given(&mut self, colony: usize) {
        for _ in 0..8 {
            self.budget = 0;
            self.emit(colony);
            self.commit(colony)
        }
    }

    /// Sends everything in an outbox.
    pub(crate) fn transmit_all(&mut self, colony: usize, log: &LogState) {
        let Some((_, view)) = self.office(colony) else { return };
        let waiting = log.outbox.values();
        waiting.for_each(|waiting| self.transmit(colony, log, &view, &waiting.emit, &BTreeSet::new()))
    }

    pub(crate) fn is_full(&self, colony: usize) -> bool {
        self.colonies[colony].office.as_ref().is_none_or(|office| office.tail.len() >= TAIL_MAX)
    }

    /// A message arrives for a bee.
    pub(crate) fn handle(&mut self, colony: usize, to: BeeId, stated: Seq, message: &Message) {
        if self.is_full(colony) {
            return;
        }
        let Some((state, view)) = self.office(colony) else { return };
        if view.index() < state.known && !self.is(Mutant::StaleReplicaTrusted) {
            return;
        }
        let (app, lane) = (message.app, message.lane);
        let mut bee = to;
        if self.is(Mutant::ReleaseUnaddressed) {
            let here = state.bees.iter().find(|((of, _), image)| {
                *of == app && message.cells.iter().all(|cell| image.cells.contains(cell))
            });
            bee = here.map_or(to, |((_, bee), _)| *bee)
        }
        let Some(image) = state.bees.get(&(app, bee)) else { return };
        let is_given = |cell: &CellId| !holds(state, app, *cell) && view.owner(app, *cell) == Some(bee);
        let has_all = message.cells.iter().all(|cell| image.cells.contains(cell) || is_given(cell));
        let is_here = has_all || self.is(Mutant::StaleRouteAccepted);
        if image.is_frozen() || !is_here || view.is_retired(lane) {
            return;
        }
        if image.seen.contains(lane, message.seq, Part::WHOLE) {
            let committed = &self.colonies[colony].committed;
            let is_committed = committed
                .bees
                .get(&(app, bee))
                .is_some_and(|image| image.seen.contains(lane, message.seq, Part::WHOLE));
            if is_committed {
                self.ack(&view, message.id(), bee)
            }
            return;
        }
        let is_done = |(of, seq): &(LaneId, Seq)| {
            image.seen.contains(*of, *seq, Part::WHOLE) || (*of == lane && *seq < stated)
        };
        if !message.after.iter().all(is_done) && !self.is(Mutant::NoAfter) {
            return;
        }
        let is_local = state.outbox.contains_key(&message.id());
        let unmarked = self.is(Mutant::LocalUnmarked)
            || self.is(Mutant::LocalUnmarkedActive) && !state.frozen.contains(&lane);
        let floor = (!(is_local && unmarked)).then_some(stated);
        let emits = if self.random.one_in(4) { 1 } else { 0 };
        self.work(colony, (app, bee), Some((message.clone(), floor)), emits);
        if self.is(Mutant::AckBeforeCommit) {
            self.ack(&view, message.id(), bee)
        }
    }

    fn ack(&mut self, view: &RegistryState, id: MessageId, by: BeeId) {
        let holder = view.bee_of_lane(id.lane).and_then(|bee| view.bee(bee));
        if let Some(holder) = holder {
            self.send(Packet::Ack { colony: holder.colony, id, by })
        }
    }

    /// After a commit, the senders are told which messages are handled.
    pub(crate) fn acknowledge(&mut self, colony: usize, proposed: &Proposed) {
        let Record::Turn(works) = &proposed.entry.record else { return };
        let (Some(message), Some(hive)) = (&proposed.handled, self.leader(colony)) else { return };
        let (view, by, id) = (self.view_of(hive), works[0].bee, message.id());
        self.ack(&view, id, by)
    }

    pub(crate) fn acked(&mut self, colony: usize, id: MessageId, by: BeeId) {
        let Some((state, view)) = self.office(colony) else { return };
        let is_open = state.outbox.contains_key(&id) && !state.frozen.contains(&id.lane);
        if view.bee(by).is_none() || !is_open || view.index() < state.known {
            return;
        }
        if self.is(Mutant::FloorOnVolatileAck) {
            if let Some(office) = &mut self.colonies[colony].office {
                office.acked.insert(id);
            }
            if self.random.one_in(2) {
                return;
            }
        }
        if self.is_full(colony) {
            return;
        }
        let acked = |app| Acked { app, lane: id.lane, seq: id.seq, count: 1, part: Part::WHOLE };
        let mut all = vec![acked(id.app)];
        if self.is(Mutant::AckIgnoresApp) {
            all = (0..APPS).map(|app| acked(AppId(app))).collect()
        }
        self.append(colony, Record::Acked(all), None, Vec::new())
    }

    /// Returns the packets for one message of an outbox, or the proposal that its cells get one owner.
    pub(crate) fn transmit(
        &mut self,
        colony: usize,
        log: &LogState,
        view: &RegistryState,
        emit: &Emit,
        skipped: &BTreeSet<MessageId>,
    ) {
        let mut message = message_of(emit);
        let may_work = view.index() >= log.known || self.is(Mutant::StaleReplicaTrusted);
        if log.frozen.contains(&message.lane) || !may_work {
            return;
        }
        // what is not in the outbox any more is handled
        message.after.retain(|(lane, seq)| {
            log.outbox.contains_key(&MessageId {
                lane: *lane,
                seq: *seq,
                part: Part::WHOLE,
                app: message.app,
            })
        });
        let owners: BTreeSet<Option<BeeId>> =
            message.cells.iter().map(|cell| view.owner(message.app, *cell)).collect();
        let owner = owners.first().copied().flatten().filter(|_| owners.len() == 1);
        let Some((to, entry)) = owner.and_then(|bee| Some((bee, view.bee(bee)?))) else {
            let cells = message.cells.iter().copied().collect();
            let claim = Proposal::Claim { app: message.app, cells, colony: id(colony) };
            return self.send(Packet::Propose(claim));
        };
        let of = if self.is(Mutant::FloorOfOneApp) { AppId(0) } else { message.app };
        let mut floor = floor_of(log, message.lane, of, skipped).unwrap_or(Seq::ZERO);
        if self.is(Mutant::FloorFromSpeculation)
            && let Some(office) = &self.colonies[colony].office
        {
            floor = floor_of(&office.state, message.lane, of, skipped).unwrap_or(floor)
        }
        self.send(Packet::Message { colony: entry.colony, to, floor, message })
    }

    /// Returns the state whose outbox the leader sends.
    pub(crate) fn sent_from(&self, colony: usize) -> LogState {
        match (&self.colonies[colony].office, self.is(Mutant::EmitBeforeCommit)) {
            (Some(office), true) => office.state.clone(),
            _ => self.colonies[colony].committed.clone(),
        }
    }

    /// The leader sends one message of the outbox, or a floor.
    pub(crate) fn transmit_one(&mut self, colony: usize) {
        let Some((_, view)) = self.office(colony) else { return };
        let log = self.sent_from(colony);
        let skipped = self.skipped(colony);
        if self.random.one_in(3) {
            let log = self.floors_from(colony);
            return self.state_floor(&log, &view, &skipped);
        }
        let waiting: Vec<MessageId> = log.outbox.keys().copied().collect();
        if let Some(id) = self.random.pick(&waiting) {
            self.transmit(colony, &log, &view, &log.outbox[&id].emit, &skipped)
        }
    }

    pub(crate) fn skipped(&self, colony: usize) -> BTreeSet<MessageId> {
        match &self.colonies[colony].office {
            Some(office) if self.is(Mutant::FloorOnVolatileAck) => office.acked.clone(),
            _ => BTreeSet::new(),
        }
    }

    /// Tells some bee the floor of a lane of this log.
    pub(crate) fn state_floor(
        &mut self,
        log: &LogState,
        view: &RegistryState,
        skipped: &BTreeSet<MessageId>,
    ) {
        let active = log.bees.iter().filter(|(_, image)| !image.is_frozen()).map(|(bee, _)| *bee);
        let active: Vec<_> = active.collect();
        let to = view.bees_at(id(self.random.below(self.colonies.len()))).collect::<Vec<_>>();
        let (Some((app, bee)), Some(to)) = (self.random.pick(&active), self.random.pick(&to)) else { return };
        self.state_floor_to(log, view, LaneId::of_bee(app, bee), to, skipped)
    }

    fn state_floor_to(
        &mut self,
        log: &LogState,
        view: &RegistryState,
        lane: LaneId,
        to: BeeId,
        skipped: &BTreeSet<MessageId>,
    ) {
        let Some(entry) = view.bee(to).filter(|_| view.index() >= log.known) else { return };
        if let Some(floor) = floor_of(log, lane, entry.app, skipped) {
            self.send(Packet::Floor { colony: entry.colony, app: entry.app, to, lane, floor })
        }
    }

    /// The leader tells a bee the floor of a lane, for a directed test.
    pub(crate) fn tell_floor(&mut self, colony: usize, lane: LaneId, to: BeeId) {
        let Some((_, view)) = self.office(colony) else { return };
        let (log, skipped) = (self.floors_from(colony), self.skipped(colony));
        self.state_floor_to(&log, &view, lane, to, &skipped)
    }

    /// Returns the state whose floors the leader states.
    fn floors_from(&self, colony: usize) -> LogState {
        match (&self.colonies[colony].office, self.is(Mutant::FloorFromSpeculation)) {
            (Some(office), true) => office.state.clone(),
            _ => self.sent_from(colony),
        }
    }

    pub(crate) fn raise(&mut self, colony: usize, (app, bee): (AppId, BeeId), lane: LaneId, floor: Seq) {
        let Some((state, view)) = self.office(colony) else { return };
        let is_known = state.bees.get(&(app, bee)).is_some_and(|image| {
            !image.is_frozen() && image.seen.contains_lane(lane) && image.seen.floor(lane) < floor
        });
        if !is_known || view.index() < state.known || view.is_retired(lane) || self.is_full(colony) {
            return;
        }
        let input = Input { lane, floor: Some(floor), seq: floor, count: 0, part: Part::WHOLE };
        let raised = Consumed { app, bee, inputs: [input].into_iter().collect(), visits: Vec::new() };
        self.append(colony, Record::Consumed(vec![raised]), None, Vec::new())
    }
}

/// Checks whether a bee of a log has a cell.
fn holds(log: &LogState, app: AppId, cell: CellId) -> bool {
    let bees = log.bees.iter().map(|((of, _), image)| (*of, &image.cells));
    let staged = log.staged.iter().map(|((of, _), staged)| (*of, &staged.bee.cells));
    bees.chain(staged).any(|(of, cells)| of == app && cells.contains(&cell))
}

fn emit_of(id: MessageId, payload: Payload) -> Emit {
    Emit {
        id,
        message_type: MessageTypeId(1),
        payload,
        at: None,
        is_sweep: false,
        position: None,
        origin: HiveId(0),
        sender: Address::App(id.app),
        hops: 0,
        chain: 0,
        chance: 0,
    }
}
