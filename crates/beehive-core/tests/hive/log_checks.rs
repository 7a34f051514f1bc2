//! Checks of the logs that a hive has written: nothing is left when the hive is idle, each cell has one owner, a bee
//! moves as it was frozen, and a lane does not fall behind what its receivers have handled.

use crate::findings::{Checker, Finding};
use beehive_core::journal::{BeeImage, Entry, LaneId, LogState, MessageId, Record, Seq, SnapshotLoader};
use std::collections::{BTreeMap, BTreeSet};

/// A log, as encoded entries.
pub(crate) type Log = Vec<Vec<u8>>;

/// Returns the state of a log. Checks that a snapshot of the state is the state.
pub(crate) fn replay(log: &[Vec<u8>]) -> LogState {
    let state = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
    let mut loader = SnapshotLoader::default();
    state.chunks(4096).for_each(|chunk| loader.add(&chunk).unwrap());
    assert!(loader.finish().unwrap() == state, "a snapshot is not the state of its log");
    state
}

fn rest(what: String) -> Finding {
    Finding::new(Checker::Rest, what)
}

/// Checks an idle hive: all outboxes are empty, no sweep runs, and no bee is moving.
pub(crate) fn check_rest<'a>(states: impl IntoIterator<Item = &'a LogState>) -> Result<(), Finding> {
    for (at, state) in states.into_iter().enumerate() {
        let frozen = state.bees.iter().find(|(_, image)| image.is_frozen()).map(|(bee, _)| bee);
        let left = match (state.outbox.keys().next(), state.sweeps.keys().next(), state.staged.keys().next())
        {
            (Some(id), ..) => format!("{} messages in the outbox, the first is {id:?}", state.outbox.len()),
            (_, Some(id), _) => format!("sweep {id:?} runs"),
            (.., Some(bee)) => format!("{bee:?} is staged"),
            _ if frozen.is_some() || !state.frozen.is_empty() => format!("{frozen:?} is frozen"),
            _ => continue,
        };
        return Err(rest(format!("log {at}: {left}")));
    }
    Ok(())
}

/// Checks that no cell has two owners: in each prefix of each log, and at the end in all logs together.
pub(crate) fn check_owners(logs: &[Log]) -> Result<(), Finding> {
    let two = |cell: String| Finding::new(Checker::Owners, format!("two bees own {cell}"));
    let mut owned = BTreeSet::new();
    for log in logs {
        let mut state = LogState::default();
        for entry in log.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
            // a run adds cells to a bee, and `Adopt` adds a bee. Other records take cells away
            let adds = match &entry.record {
                Record::Turn(works) => works.iter().any(|work| !work.cells.is_empty()),
                record => matches!(record, Record::Adopt { .. }),
            };
            if state.apply(&entry) && adds && !state.has_one_owner_per_cell() {
                return Err(two(format!("a cell after entry {:?}", entry.number)));
            }
        }
        for ((app, bee), image) in &state.bees {
            // a frozen bee may already be adopted by another log
            let cells = image.cells.iter().filter(|_| !image.is_frozen());
            for cell in cells {
                if !owned.insert((*app, *cell)) {
                    return Err(two(format!("{cell:?} of {app:?}, {bee} is one of them")));
                }
            }
        }
    }
    Ok(())
}

/// Checks that a log contains no run of a bee that has ended in it: the id of a bee that has run is used once.
pub(crate) fn check_ids(logs: &[Log]) -> Result<(), Finding> {
    for log in logs {
        let (mut state, mut ran, mut ended) = (LogState::default(), BTreeSet::new(), BTreeSet::new());
        for entry in log.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
            if !state.apply(&entry) {
                continue;
            }
            match &entry.record {
                Record::Turn(works) => {
                    if let Some(work) = works.iter().find(|work| ended.contains(&(work.app, work.bee))) {
                        let what = format!("{} of {:?} is used again", work.bee, work.app);
                        return Err(Finding::new(Checker::Ids, what));
                    }
                    ran.extend(works.iter().map(|work| (work.app, work.bee)))
                }
                Record::Fuse { app, from: bee, .. } | Record::Release { app, bee, .. } => {
                    ended.extend(ran.take(&(*app, *bee)))
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Checks that no bee ends before everything that it has sent is acknowledged, for bees that move. The next owner of its cells
/// may be in another log, and after a crash nothing orders the outboxes of two logs.
pub(crate) fn check_ends(logs: &[Log]) -> Result<(), Finding> {
    for log in logs {
        let mut state = LogState::default();
        for entry in log.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
            if let Record::Release { app, bee, .. } = &entry.record
                && entry.after == state.last
                && let Some(image) = state.bees.get(&(*app, *bee))
            {
                let own = LaneId::of_bee(*app, *bee);
                let mut lanes = image.heir_of.iter().chain([&own]);
                let waits = |lane: &&LaneId| state.outbox.range(MessageId::all_of(**lane)).next().is_some();
                if let Some(lane) = lanes.find(waits) {
                    let what = format!("{bee} ends while the outbox of {lane:?} has messages");
                    return Err(Finding::new(Checker::Ends, what));
                }
            }
            state.apply(&entry);
        }
    }
    Ok(())
}

/// Checks that what a bee has sent since it merged with another bee is behind what the other one had sent, in each outbox that
/// moves with it. The bee has their messages on different lanes, and its next log sends them again in the order of this outbox.
pub(crate) fn check_outbox_order(logs: &[Log]) -> Result<(), Finding> {
    /// What a bee sends on `lane` from number `since` on comes behind everything on these lanes.
    struct Behind {
        lane: LaneId,
        since: Seq,
        others: BTreeSet<LaneId>,
    }
    let (mut merges, mut outboxes): (Vec<Behind>, Vec<(String, Vec<MessageId>)>) = Default::default();
    for log in logs {
        let mut state = LogState::default();
        for entry in log.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
            if entry.after == state.last {
                match &entry.record {
                    Record::Fuse { app, from, into, .. } => {
                        let images = [from, into].map(|bee| state.bees.get(&(*app, *bee)));
                        if let [Some(from_image), Some(into_image)] = images {
                            let others = from_image.heir_of.iter().copied();
                            merges.push(Behind {
                                lane: LaneId::of_bee(*app, *into),
                                since: into_image.next_seq,
                                others: others.chain([LaneId::of_bee(*app, *from)]).collect(),
                            })
                        }
                    }
                    Record::Adopt { app, bee, .. } => {
                        let staged = state.staged.get(&(*app, *bee)).into_iter();
                        let ids = staged.flat_map(|copy| copy.outbox.iter().map(|emit| emit.id));
                        outboxes.push((format!("{bee} of {app:?}"), ids.collect()))
                    }
                    _ => {}
                }
            }
            state.apply(&entry);
        }
    }
    for Behind { lane, since, others } in &merges {
        for (bee, outbox) in &outboxes {
            let newer = outbox.iter().position(|id| id.lane == *lane && id.seq >= *since);
            let older = outbox.iter().rposition(|id| others.contains(&id.lane));
            if let (Some(newer), Some(older)) = (newer, older)
                && newer < older
            {
                let what = format!("{bee} is adopted with {:?} before {:?}", outbox[newer], outbox[older]);
                return Err(Finding::new(Checker::Moves, what));
            }
        }
    }
    Ok(())
}

/// A bee and the ids of the messages in its outbox.
type Copy = (BeeImage, Vec<MessageId>);

/// Checks that each adopted bee has the cells, rows and outbox that it had in the other log when it was frozen.
pub(crate) fn check_moves(logs: &[Log]) -> Result<(), Finding> {
    let wrong = |what: String| Err(Finding::new(Checker::Moves, what));
    let mut frozen: BTreeMap<_, Vec<Copy>> = BTreeMap::new();
    let mut adopted: BTreeMap<_, Vec<Copy>> = BTreeMap::new();
    for log in logs {
        let mut state = LogState::default();
        for entry in log.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
            if let Record::Adopt { app, bee, epoch, .. } = entry.record
                && entry.after == state.last
            {
                let Some(copy) = state.staged.get(&(app, bee)).cloned() else {
                    return wrong(format!("{bee} is adopted, but not staged"));
                };
                let outbox = copy.outbox.iter().map(|emit| emit.id).collect();
                adopted.entry((app, bee, epoch)).or_default().push((*copy.bee, outbox))
            }
            if let Record::Freeze { app, bee, lanes, .. } = &entry.record
                && entry.after == state.last
            {
                let heirs = state.bees.get(&(*app, *bee)).into_iter().flat_map(|image| image.heir_of.iter());
                let waits = |lane: &&LaneId| state.outbox.range(MessageId::all_of(**lane)).next().is_some();
                if let Some(lane) = heirs.filter(waits).find(|lane| !lanes.contains(lane)) {
                    return wrong(format!("{bee} leaves the outbox of {lane:?} behind"));
                }
            }
            let has_effect = state.apply(&entry);
            if let Record::Freeze { app, bee, lanes, .. } = entry.record
                && has_effect
            {
                let image = state.bees[&(app, bee)].clone();
                let of_lane = |lane: &LaneId| {
                    let sweeps = state.sweeps.range(MessageId::all_of(*lane)).map(|(id, _)| *id);
                    let messages = state.outbox.range(MessageId::all_of(*lane)).map(|(id, _)| *id);
                    messages.chain(sweeps).collect::<Vec<_>>()
                };
                let outbox = lanes.iter().flat_map(of_lane).collect();
                frozen.entry((app, bee, image.epoch.next())).or_default().push((*image, outbox))
            }
        }
    }
    for (of, copies) in adopted {
        let [(copy, outbox)] = &copies[..] else {
            return wrong(format!("{of:?} is adopted {} times", copies.len()));
        };
        // an earlier move, which was abandoned, froze the bee at the same epoch
        let ids = |ids: &[MessageId]| ids.iter().copied().collect::<BTreeSet<_>>();
        let differences = |(image, before): &Copy| {
            let (before, after) = (ids(before), ids(outbox));
            let lost: Vec<_> = before.difference(&after).copied().collect();
            let added: Vec<_> = after.difference(&before).copied().collect();
            // The sequence numbers of refused records are not reused, and the newest cells may not be in the
            // log yet.
            let is_copy = image.state == copy.state
                && image.next_seq <= copy.next_seq
                && image.cells.is_subset(&copy.cells);
            (is_copy, lost, added)
        };
        let found: Vec<_> = frozen.get(&of).into_iter().flatten().map(differences).collect();
        if !found.iter().any(|(is_copy, lost, added)| *is_copy && lost.is_empty() && added.is_empty()) {
            return wrong(format!("what is adopted of {of:?} is not what was frozen: {found:?}"));
        }
    }
    Ok(())
}

/// Checks that no bee has handled a message that its sender has not sent, and that no floor lies above what the sender
/// has sent. The sender would otherwise use the number for another message, which its receivers would ignore.
pub(crate) fn check_lanes(logs: &[Log]) -> Result<(), Finding> {
    let states: Vec<LogState> = logs.iter().map(|log| replay(log)).collect();
    let next = next_of(&states);
    for ((_, bee), image) in states.iter().flat_map(|state| &state.bees) {
        for (lane, floor) in image.seen.floors() {
            let Some(next) = next.get(&lane) else { continue };
            if floor > *next || !image.seen.is_below(lane, *next) {
                let what = format!("{bee} has handled {lane:?} beyond {next:?}, floor {floor:?}");
                return Err(Finding::new(Checker::Lanes, what));
            }
        }
    }
    Ok(())
}

/// The numbers that the senders of some logs had reached when everything was handled and acknowledged.
pub(crate) struct Settled {
    next: BTreeMap<LaneId, Seq>,
    /// Number of entries of each log.
    entries: Vec<usize>,
}

impl Settled {
    /// Returns `None` if an outbox has a message, or a sweep runs. `entries` is the number of entries of each log.
    pub(crate) fn of(states: &[LogState], entries: Vec<usize>) -> Option<Settled> {
        let is_settled = |state: &LogState| {
            let nothing_staged = state.staged.values().all(|staged| staged.outbox.is_empty());
            state.outbox.is_empty() && state.sweeps.is_empty() && nothing_staged
        };
        states.iter().all(is_settled).then(|| Settled { next: next_of(states), entries })
    }

    /// Checks that each bee that has handled a message since then has forgotten all earlier ones of the same lane: the
    /// sender has stated a floor above them.
    pub(crate) fn check(&self, logs: &[Log], states: &[LogState]) -> Result<(), Finding> {
        let mut heard = BTreeSet::new();
        for (log, read) in logs.iter().zip(&self.entries) {
            for entry in log[*read..].iter().map(|bytes| Entry::decode(bytes).unwrap()) {
                let Record::Turn(works) = &entry.record else { continue };
                for work in works {
                    let lanes = work.inputs.iter().map(|input| input.lane).filter(|lane| !lane.is_outside());
                    heard.extend(lanes.map(|lane| (work.app, work.bee, lane)))
                }
            }
        }
        for (app, bee, lane) in heard {
            let images = states.iter().filter_map(|state| state.bees.get(&(app, bee)));
            let Some(image) = images.max_by_key(|image| image.epoch) else { continue };
            let (floor, next) = (image.seen.floor(lane), self.next.get(&lane).copied().unwrap_or_default());
            if floor < next && image.seen.contains_lane(lane) {
                let what = format!(
                    "{bee} of {app:?} lists messages of {lane:?} from {floor:?} on, not from {next:?}"
                );
                return Err(Finding::new(Checker::Memory, what));
            }
        }
        Ok(())
    }
}

/// Returns the next number of each lane.
fn next_of(states: &[LogState]) -> BTreeMap<LaneId, Seq> {
    let mut next: BTreeMap<LaneId, Seq> = BTreeMap::new();
    for state in states {
        let of_bees =
            state.bees.iter().map(|((app, bee), image)| (LaneId::of_bee(*app, *bee), image.next_seq));
        for (lane, seq) in of_bees.chain(state.next_seqs.iter().map(|(lane, seq)| (*lane, *seq))) {
            let known = next.entry(lane).or_default();
            *known = seq.max(*known)
        }
    }
    next
}

/// Checks that dedup tables are small: nearly everything that they list is below a floor. Counts all logs together, because
/// bees may move, and one log may have most of them.
pub(crate) fn check_memory(logs: &[Log]) -> Result<(), Finding> {
    let (mut numbers, mut lanes) = (0, 0);
    for log in logs {
        let state = replay(log);
        numbers += state.bees.values().map(|bee| bee.seen.size()).sum::<usize>();
        lanes += state.bees.values().map(|bee| bee.seen.floors().count()).sum::<usize>()
    }
    if numbers > 4 * lanes + 300 * logs.len() {
        return Err(Finding::new(Checker::Memory, format!("{numbers} numbers of {lanes} lanes")));
    }
    Ok(())
}
