//! The naive model of a log's state: lists of everything that has happened.

use crate::{APP, HANDLERS, OF_ANOTHER_LOG, OUTSIDE, PARTS, SEQS};
use beehive_protocol::{
    AppId, BeeId, BeeImage, CellId, ColonyId, CrashMarker, Epoch, HandlerId, LaneId, LogPlace, LogState,
    MessageId, Part, Seq, Shapes, Time, Untold,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The place of a row: dictionary, cell, and row. The value of a `Dict` has no row.
pub(crate) type Place = (u32, u8, Option<u8>);

/// One bee of the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bee {
    pub(crate) cells: BTreeSet<CellId>,
    /// All changes of rows, oldest first.
    pub(crate) changes: Vec<(Place, Option<u8>)>,
    pub(crate) seen: HashSet<(LaneId, Seq, Part)>,
    pub(crate) floors: BTreeMap<LaneId, Seq>,
    /// The lanes of all bees that have merged into it, directly or through other bees.
    pub(crate) merged: BTreeSet<LaneId>,
    pub(crate) next: Seq,
    pub(crate) now: Time,
    pub(crate) epoch: Epoch,
    /// If the bee is frozen, the colony to which it is about to move, and the lanes of its outbox.
    pub(crate) frozen: Option<(ColonyId, Vec<LaneId>)>,
}

impl Bee {
    pub(crate) fn has_seen(&self, lane: LaneId, seq: Seq, part: Part) -> bool {
        self.floors.get(&lane).is_some_and(|floor| seq < *floor) || self.seen.contains(&(lane, seq, part))
    }

    pub(crate) fn raise(&mut self, lane: LaneId, floor: Seq) {
        let known = self.floors.entry(lane).or_default();
        *known = floor.max(*known)
    }

    /// Returns the rows: the last change of each counts.
    fn rows(&self) -> BTreeMap<Place, u8> {
        let mut rows = BTreeMap::new();
        for (place, value) in &self.changes {
            match value {
                Some(value) => rows.insert(*place, *value),
                None => rows.remove(place),
            };
        }
        rows
    }

    fn check(&self, id: BeeId, image: &BeeImage) {
        assert!(image.cells.iter().eq(&self.cells), "{id}: {:?} {:?}", image.cells, self.cells);
        let mut rows = BTreeMap::new();
        for cell in image.state.images() {
            let of_cell = |(row, value): &(Vec<u8>, Vec<u8>)| {
                ((cell.dict, cell.key[0], row.first().copied()), value[0])
            };
            rows.extend(cell.rows.iter().map(of_cell))
        }
        assert_eq!(rows, self.rows(), "{id}");
        let lanes = OUTSIDE.into_iter().chain(OF_ANOTHER_LOG);
        for (lane, seq) in lanes.flat_map(|lane| SEQS.map(move |seq| (lane, Seq(seq)))) {
            // only messages of other logs have parts
            let parts = if lane.is_outside() { 0..1 } else { PARTS };
            for part in parts.map(Part) {
                let is = image.seen.contains(lane, seq, part);
                assert_eq!(is, self.has_seen(lane, seq, part), "{id} {lane:?} {seq:?} {part:?}")
            }
        }
        assert_eq!(
            (image.next_seq, image.now, image.epoch, image.leaves_for),
            (self.next, self.now, self.epoch, self.frozen.as_ref().map(|(to, _)| *to)),
            "{id}"
        )
    }
}

/// A bee that is about to move to this log.
#[derive(Clone, Debug)]
pub(crate) struct Arriving {
    pub(crate) bee: Bee,
    /// The messages and sweeps in its outbox.
    pub(crate) outbox: Vec<(MessageId, bool)>,
    pub(crate) staged: u32,
    pub(crate) of: u32,
}

/// A sweep: the cells that it has reached and not visited, whether it has reached all cells, and the message that began it.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    pub(crate) id: MessageId,
    pub(crate) open: BTreeSet<CellId>,
    pub(crate) has_reached_all: bool,
    pub(crate) began_by: Option<MessageId>,
}

/// The naive model.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) bees: BTreeMap<BeeId, Bee>,
    pub(crate) arriving: BTreeMap<BeeId, Arriving>,
    /// All emitted messages, oldest first, each with whether it has left the outbox.
    pub(crate) emitted: Vec<(MessageId, bool)>,
    /// All sweeps, oldest first.
    pub(crate) sweeps: Vec<Sweep>,
    pub(crate) without_bee: HashSet<(LaneId, Seq, HandlerId)>,
    pub(crate) floors: BTreeMap<LaneId, Seq>,
    pub(crate) newest: Option<BeeId>,
    /// The next number of the lane of the app's stateless handlers.
    pub(crate) next_of_app: Option<Seq>,
    /// All settings, with their versions.
    pub(crate) settings: BTreeMap<AppId, Vec<(u32, String)>>,
    pub(crate) shapes: Shapes,
    pub(crate) marker: Option<CrashMarker>,
    pub(crate) now: Time,
    pub(crate) place: Option<LogPlace>,
    pub(crate) untold: Vec<Untold>,
    /// The highest index of the registry in a record.
    pub(crate) known: u64,
}

impl Model {
    /// Returns the messages in the outbox.
    pub(crate) fn open(&self) -> Vec<MessageId> {
        self.emitted.iter().filter(|(_, has_left)| !has_left).map(|(id, _)| *id).collect()
    }

    pub(crate) fn open_sweeps(&self) -> Vec<MessageId> {
        let is_open = |sweep: &&Sweep| !sweep.open.is_empty() || !sweep.has_reached_all;
        self.sweeps.iter().filter(is_open).map(|sweep| sweep.id).collect()
    }

    /// Returns the lanes with a message in the outbox, or with an open sweep.
    pub(crate) fn open_lanes(&self) -> BTreeSet<LaneId> {
        self.open().into_iter().chain(self.open_sweeps()).map(|id| id.lane).collect()
    }

    pub(crate) fn is_frozen(&self, lane: LaneId) -> bool {
        self.bees.values().any(|bee| bee.frozen.as_ref().is_some_and(|(_, lanes)| lanes.contains(&lane)))
    }

    pub(crate) fn owns(&self, cell: CellId, but: BeeId) -> bool {
        self.bees.iter().any(|(id, bee)| *id != but && bee.cells.contains(&cell))
    }

    pub(crate) fn raise(&mut self, lane: LaneId, floor: Seq) {
        let known = self.floors.entry(lane).or_default();
        *known = floor.max(*known)
    }

    pub(crate) fn emit(&mut self, id: MessageId, is_sweep: bool, began_by: Option<MessageId>) {
        match is_sweep {
            true => self.sweeps.push(Sweep { id, open: BTreeSet::new(), has_reached_all: false, began_by }),
            false => self.emitted.push((id, false)),
        }
    }

    /// Removes messages and sweeps from the outbox.
    pub(crate) fn take(&mut self, taken: impl Fn(&MessageId) -> bool) {
        self.emitted.iter_mut().for_each(|(id, has_left)| *has_left |= taken(id));
        self.sweeps.retain(|sweep| !taken(&sweep.id))
    }

    /// Compares a state with the model, and those of its bees that `has_changed` selects.
    pub(crate) fn check(&self, state: &LogState, has_changed: impl Fn(BeeId) -> bool) {
        assert!(state.has_one_owner_per_cell());
        let open = self.open();
        assert_eq!(
            state.outbox.keys().copied().collect::<BTreeSet<_>>(),
            open.iter().copied().collect::<BTreeSet<_>>()
        );
        let orders = open.iter().map(|id| state.outbox[id].order);
        assert!(orders.is_sorted_by(|a, b| a < b), "the outbox is in the order of emission: {open:?}");
        let sweeps = self.open_sweeps();
        assert_eq!(state.sweeps.len(), sweeps.len(), "{:?} {sweeps:?}", state.sweeps);
        for sweep in self.sweeps.iter().filter(|sweep| sweeps.contains(&sweep.id)) {
            let found = &state.sweeps[&sweep.id];
            assert_eq!((&found.open, found.began_by), (&sweep.open, sweep.began_by));
            assert_eq!(found.next.is_none(), sweep.has_reached_all)
        }

        let ids = state.bees.keys().filter(|(app, _)| *app == APP).map(|(_, bee)| bee);
        assert!(ids.eq(self.bees.keys()));
        for (id, bee) in self.bees.iter().filter(|(id, _)| has_changed(**id)) {
            bee.check(*id, &state.bees[&(APP, *id)]);
            assert_eq!(state.is_active(APP, *id), bee.frozen.is_none())
        }
        assert!(state.staged.keys().eq(self.arriving.keys().map(|id| (APP, *id)).collect::<Vec<_>>().iter()));
        for (id, arriving) in &self.arriving {
            let staged = &state.staged[&(APP, *id)];
            assert_eq!((staged.parts, staged.of), (arriving.staged, arriving.of));
            assert_eq!(staged.is_complete(), arriving.staged == arriving.of)
        }
        let frozen: BTreeSet<LaneId> = self
            .bees
            .values()
            .filter_map(|bee| bee.frozen.as_ref())
            .flat_map(|(_, lanes)| lanes.clone())
            .collect();
        assert_eq!(state.frozen, frozen);

        assert_eq!(state.newest.get(&APP).copied(), self.newest);
        assert_eq!(state.next_seqs.get(&LaneId::of_app(APP)).copied(), self.next_of_app);
        assert_eq!((state.now, state.known, &state.untold), (self.now, self.known, &self.untold));
        assert_eq!((&state.shapes, &state.marker, state.place), (&self.shapes, &self.marker, self.place));
        for (app, all) in &self.settings {
            // the first one of the highest version counts, and version 0 stands for none
            let all = all.iter().filter(|(version, _)| *version > 0).rev();
            let want = all.max_by_key(|(version, _)| *version);
            let is = state.settings.get(app).map(|is| (is.version, is.table.clone()));
            assert_eq!(is.filter(|(version, _)| *version > 0), want.cloned())
        }

        let lasting = OUTSIDE[1];
        let floor = self.floors.get(&lasting).copied().unwrap_or_default();
        assert_eq!(state.seen.floor(lasting), floor);
        for (seq, handler) in SEQS.flat_map(|seq| HANDLERS.map(move |handler| (Seq(seq), HandlerId(handler))))
        {
            let part = Part::WHOLE.derived(APP, handler);
            let want = seq < floor || self.without_bee.contains(&(lasting, seq, handler));
            assert_eq!(state.seen.contains(lasting, seq, part), want)
        }
    }
}
